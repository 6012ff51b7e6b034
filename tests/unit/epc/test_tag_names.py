"""Names of tags: GS1's own examples, a second decoder, tags written by hand, and bits that are no name."""

import random

import pyarrow as pa
import pytest
from epc.schemes import GIAI, GID, GRAI, SGLN, SGTIN

import whenabouts as wa
from support.cloud.tags import TAGS, random_sgtin
from whenabouts_cloud.epc import tag_names
from whenabouts_cloud.epc.columns import name_columns, word_column
from whenabouts_cloud.epc.rule_words import WORDS, word_of
from whenabouts_cloud.epc.tag_names import name_in

# Of the EPC Tag Data Standard: bits, pure identity, element string.
EXAMPLES = [
    ("3074257BF7194E4000001A85", "sgtin:0614141.812345.6789", "(01)80614141123458(21)6789"),
    ("3174257BF4499602D2000000", "sscc:0614141.1234567890", "(00)106141412345678908"),
    ("3274257BF46072000000162E", "sgln:0614141.12345.5678", "(414)0614141123452(254)5678"),
    ("3376451FD40C0E400000162E", "grai:9521141.12345.5678", "(8003)095211411234545678"),
    ("3476451FD40000000000162E", "giai:9521141.5678", "(8004)95211415678"),
    ("3500E86F8000A9E000000586", "gid:952056.2718.1414", None),
    ("2C76451FD46072000000162E", "gdti:9521141.12345.5678", "(253)95211411234545678"),
    ("2D16451FD4499602D2000000", "gsrn:9521141.1234567890", "(8018)952114112345678906"),
    ("2E76451FD4499602D2000000", "gsrnp:9521141.1234567890", "(8017)952114112345678906"),
    ("3F16451FD612640000019907", "sgcn:9521141.67890.04711", "(255)952114167890904711"),
    (
        "3E76451FD7039B061438997367D0C18B266D1AB66EE0",
        "gdti:9521141.98765.ABCDefgh012345678",
        "(253)9521141987650ABCDefgh012345678",
    ),
    ("3C76451FD400C0E680003039", "cpi:9521141.98765.12345", "(8010)952114198765(8011)12345"),
    ("3D76451FD75411DEF6B4CC00000003039000", "cpi:9521141.5PQ7%2FZ43.12345", "(8010)95211415PQ7/Z43(8011)12345"),
    ("4076451FD40C0E40820000000F54", "itip:9521141.012345.01.02.981", "(8006)095211411234540102(21)981"),
    (
        "4176451FD40C0E4082DBDD8B36600000000000000000000000000000",
        "itip:9521141.012345.01.02.mw133",
        "(8006)095211411234540102(21)mw133",
    ),
    ("2F320434147455900000162E", "usdod:CAGEY.5678", None),
    (
        "3616451FD40C0E59B2C2BF100000000000000000000000000000",
        "sgtin:9521141.012345.32a%2Fb",
        "(01)09521141123454(21)32a/b",
    ),
    (
        "3916451FD46072CD9615F8800000000000000000000000000000",
        "sgln:9521141.12345.32a%2Fb",
        "(414)9521141123454(254)32a/b",
    ),
    ("3816451FD59B2C2BF10000000000000000000000000000000000", "giai:9521141.32a%2Fb", "(8004)952114132a/b"),
    ("3716451FD40C0E59B2C2BF1000000000000000000000", "grai:9521141.12345.32a%2Fb", "(8003)0952114112345432a/b"),
]


@pytest.mark.parametrize(("bits", "identity", "element"), EXAMPLES, ids=lambda one: (one or "-")[:30])
def test_the_examples_of_the_standard_have_their_names(bits, identity, element):
    name = wa.epc(bits)
    assert (name.uri, name.element_string) == (f"urn:epc:id:{identity}", element)
    assert wa.epc(f" {bits.lower()} ") == name
    assert name.hex == bits
    assert str(name) == name.uri
    assert isinstance(name, tag_names.EpcName)


def test_an_sgtin_has_a_gtin_a_link_and_a_filter_and_an_sscc_has_no_gtin():
    """The check digit of 8061414112345 is 8, by the standard's own arithmetic."""
    name = wa.epc("3074257BF7194E4000001A85")
    assert (name.gtin, name.coding, name.filter, name.company_prefix) == ("80614141123458", "sgtin-96", 3, "0614141")
    assert name.digital_link == "https://id.gs1.org/01/80614141123458/21/6789"
    pallet = wa.epc("3174257BF4499602D2000000")
    assert (pallet.gtin, pallet.digital_link) == (None, "https://id.gs1.org/00/106141412345678908")
    assert wa.epc("3616451FD40C0E59B2C2BF100000000000000000000000000000").digital_link.endswith("/21/32a%2Fb")
    assert wa.epc("3D76451FD75411DEF6B4CC00000003039000").digital_link.endswith("/8010/95211415PQ7%2FZ43/8011/12345")
    assert wa.epc("4076451FD40C0E40820000000F54").gtin == "09521141123454"
    general = wa.epc("3500E86F8000A9E000000586")
    assert (general.filter, general.company_prefix, general.element_string, general.digital_link) == (None,) * 4


@pytest.mark.parametrize(
    ("header", "scheme"), [(0x30, SGTIN), (0x32, SGLN), (0x33, GRAI), (0x34, GIAI), (0x35, GID)], ids=str
)
def test_random_bits_have_the_name_that_another_decoder_gives_or_none(header, scheme):
    """Where ours gives a name, both agree. The other one does not look at the digits that a partition leaves."""
    rng, named, refused = random.Random(header), 0, 0
    for _ in range(400):
        bits = f"{header << 88 | rng.getrandbits(88):024X}"
        try:
            name = wa.epc(bits)
        except wa.EpcError:
            refused += 1
            continue
        named += 1
        assert scheme(epc=bits).pure_identity_uri == name.uri
    assert named > 10
    assert refused > 10 or scheme is GID


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        ("", "EPC '': found 0 characters, expected hexadecimal digits"),
        ("30G4257BF7194E4000001A85", "expected hexadecimal digits"),
        ("3074257BF7194E4000001A8", "found 23 characters"),
        ("30" * 200, "at most 128"),
        ("E2801160600002084C5D3A1F", "found the header E2, which is of no name in the tag data standard"),
        ("3074257BF7194E4000001A850001", "found bits that no sgtin-96 has"),
        ("3074257BF7194E4000001A850000", "found 112 bits, expected 96 of a sgtin-96"),
        ("3074257BF7194E40", "found no sgtin-96 in it"),
        ("3D76451FD75411DEF6B4CC0000000000", "found 128 bits, expected 144 of a cpi-var"),  # its serial would be 0
        ("3074257BF7194E400000", "expected (>=): 96 actual: 80"),
        ("307C257BF7194E4000001A85", "found no sgtin-96 in it"),  # partition 7
        ("3077FFFFFC00000000000000", "found no sgtin-96 in it"),  # a company prefix of 8 digits in place of 7
        ("3174257BF4499602D2000001", "found bits that no sscc-96 has"),  # its last 24 bits are zero
        (b"3074", "EPC: found bytes, expected a text of hexadecimal digits"),
    ],
)
def test_bits_that_hold_no_name_are_refused_with_what_was_found(bits, text):
    with pytest.raises(wa.EpcError) as refused:
        wa.epc(bits)
    assert text in str(refused.value)


def test_the_extension_0_of_a_location_means_that_there_is_none():
    """The pure identity keeps it; element string and Digital Link have no identifier 254 then."""
    number = (0x32 << 88) | (3 << 85) | (5 << 82) | (614141 << 58) | (12345 << 41)
    name = wa.epc(f"{number:024X}")
    assert (name.uri, name.element_string) == ("urn:epc:id:sgln:0614141.12345.0", "(414)0614141123452")
    assert name.digital_link == "https://id.gs1.org/414/0614141123452"
    assert wa.epc(f"{number | 10:024X}").element_string == "(414)0614141123452(254)10"


def test_a_serial_that_looks_like_an_identifier_is_no_second_one():
    """The serial a(10)b(21) of an SGTIN-198, 7 bits a character: it stays whole, and nobody adds a batch by it."""
    serial = "".join(f"{ord(one):07b}" for one in "a(10)b(21)").ljust(140, "0")
    bits = f"{0x36:08b}001101{614141:024b}{812345:020b}{serial}".ljust(208, "0")
    name = wa.epc(f"{int(bits, 2):052X}")
    assert name.element_string == "(01)80614141123458(21)a(10)b(21)"
    assert name.digital_link == "https://id.gs1.org/01/80614141123458/21/a%2810%29b%2821%29"


@pytest.mark.parametrize("seed", range(40))
def test_tags_written_from_names_have_these_names(seed):
    """Prefixes of every length, any serial and filter value; a changed partition gives another name, or none."""
    tag = random_sgtin(random.Random(seed))
    name = wa.epc(tag.key)
    assert (name.uri, name.gtin, name.scheme, name.company_prefix) == tag[1:]
    found = set()
    for partition in range(8):
        changed = f"{int(tag.key, 16) & ~(7 << 82) | partition << 82:024X}"
        other = name_in(changed)
        assert other is None or wa.epc(changed) == other
        found.add(other and other.uri)
    assert tag.uri in found


def test_expected_company_prefixes_refuse_what_is_not_theirs():
    """Names without a prefix too. What cannot be a prefix is refused, whatever the tag."""
    case, general = "3074257BF7194E4000001A85", "3500E86F8000A9E000000586"
    assert wa.epc(case, prefixes=["9521141", "0614141"]) == wa.epc(case, prefixes="0614141") == wa.epc(case)
    with pytest.raises(wa.EpcError, match=r"found the company prefix 0614141 in urn:.*, expected one of 9521141"):
        wa.epc(case, prefixes={"9521141"})
    with pytest.raises(
        wa.EpcError, match=r"found the company prefix None in urn:epc:id:gid.*, expected one of 0614141"
    ):
        wa.epc(general, prefixes=["0614141"])
    with pytest.raises(wa.EpcError, match="expected one of none"):
        wa.epc(case, prefixes=[])
    for wrong in ([614141], ["06141"], "sgtin", [None]):
        with pytest.raises(
            wa.EpcError, match=r"prefixes: found .*, expected company prefixes, texts of 6 to 12 digits"
        ):
            wa.epc(case, prefixes=wrong)


def test_of_random_bits_hardly_any_has_an_expected_prefix():
    """Half of them look like an SGTIN."""
    rng = random.Random(7)
    keys = [f"30{rng.getrandbits(88):022X}" for _ in range(2000)]
    assert 800 < sum(name_in(key) is not None for key in keys) < 1200
    assert name_columns(pa.array(keys), ["0614141"])["uri"].null_count == 2000


def test_a_key_of_any_kind_has_a_name_or_none():
    """Whatever readers and attackers send; a very long one costs nothing and is not remembered."""
    before = tag_names._name_or_reason.cache_info().currsize
    for key in (None, "", " ", "\0", "3074", "\u0663" * 24, "30" * 100_000, "x" * 10**6):
        assert name_in(key) is None
        with pytest.raises(wa.EpcError):
            wa.epc(key)
    assert tag_names._name_or_reason.cache_info().currsize <= before + 6


@pytest.mark.parametrize("tag", TAGS, ids=lambda tag: str(tag.key)[:12])
def test_words_of_rules_and_columns_say_the_same(tag):
    """As the name says it; columns are null where there is none."""
    said = {word: word_of(tag.key, word) for word in WORDS}
    assert said == {word: getattr(tag, word) for word in WORDS}
    assert word_of(tag.key, "key") == tag.key
    [row] = name_columns(pa.array([tag.key], pa.string())).to_pylist()
    assert {word: row[word] for word in WORDS} == said
    name = name_in(tag.key)
    assert row["epc_filter"] == (name and name.filter)
    assert (row["digital_link"] is None) == (name is None or name.digital_link is None)


FOUR = pa.array([TAGS[0].key, None, TAGS[0].key, "hot"])
HALVES = [FOUR.slice(0, 2), FOUR.slice(2)]


@pytest.mark.parametrize(
    "keys",
    [
        FOUR,
        FOUR.cast(pa.large_string()),
        FOUR.dictionary_encode(),
        pa.chunked_array(HALVES),
        pa.chunked_array([half.dictionary_encode() for half in HALVES]),
    ],
    ids=lambda keys: str(keys.type)[:40],
)
def test_columns_of_any_text_type_are_read(keys):
    assert name_columns(keys)["gtin"].to_pylist() == [TAGS[0].gtin, None, TAGS[0].gtin, None]
    assert name_columns(keys.slice(0, 0)).num_rows == 0


def test_only_keys_that_occur_are_decoded():
    """A dictionary may hold the keys of a whole batch: those that no row has cost nothing."""
    keys = pa.DictionaryArray.from_arrays(
        pa.array([2, None, 2], pa.int32()), pa.array(["30" * 12, "31" * 12, TAGS[0].key])
    )
    misses = tag_names._name_or_reason.cache_info().misses
    assert word_column(keys, "gtin").to_pylist() == [TAGS[0].gtin, None, TAGS[0].gtin]
    assert tag_names._name_or_reason.cache_info().misses <= misses + 1
