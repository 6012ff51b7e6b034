"""Names of tags: GS1's own examples, a second decoder, and bits that are no name."""

import random

import pytest
from epc.schemes import GIAI, GID, GRAI, SGLN, SGTIN

import whenabouts as wa
from whenabouts_cloud.epc import tag_names

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
    ("3F16451FD612640000019907", "sgcn:9521141.67890.04711", "(255)952114167890904711"),
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
    assert (name.gtin, name.scheme, name.filter, name.company_prefix) == ("80614141123458", "sgtin-96", 3, "0614141")
    assert name.digital_link == "https://id.gs1.org/01/80614141123458/21/6789"
    pallet = wa.epc("3174257BF4499602D2000000")
    assert (pallet.gtin, pallet.digital_link) == (None, "https://id.gs1.org/00/106141412345678908")
    assert wa.epc("3616451FD40C0E59B2C2BF100000000000000000000000000000").digital_link.endswith("/21/32a%2Fb")
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
