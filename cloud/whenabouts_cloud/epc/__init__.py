"""Names of tags: what the bits of an EPC say, if they are one."""

from whenabouts_cloud.epc.tag_names import EpcError, EpcName, digital_link, epc

__all__ = ["EpcError", "EpcName", "digital_link", "epc"]
