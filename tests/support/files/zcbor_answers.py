"""Run by the Python of zcbor's own environment: prints for each line `RULE HEX` whether zcbor accepts the bytes.

argv: the schema. Answers are lines: `accepted`, `refused`, or `failed` and why.
"""

import sys

from zcbor.zcbor.zcbor import CddlValidationError, parse_args, parse_cddl


def type_of(rule):
    """A rule of the schema, as `zcbor validate` reads it."""
    sys.argv[1:] = ["validate", "-c", SCHEMA, "-t", rule, "-i", "-", "--input-as", "cbor"]
    return parse_cddl(parse_args())


def main():
    """Answer until the input ends."""
    types = {}
    for line in sys.stdin:
        rule, data = line.rstrip("\n").split(" ")
        try:
            if rule not in types:
                types[rule] = type_of(rule)
            types[rule].validate_str(bytes.fromhex(data))
            answer = "accepted"
        except CddlValidationError:
            answer = "refused"
        except Exception as error:
            answer = f"failed {error!r}"
        print(answer.replace("\n", " "), flush=True)


if __name__ == "__main__":
    SCHEMA = sys.argv[1]
    main()
