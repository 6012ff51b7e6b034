"""ID-2LA, ID-12LA and ID-20LA: 125 kHz readers whose frames `em4100` decodes.

They report a tag once, as it enters the field, so how long it stays is unknown. Source: the data sheet of 2013.
"""

from whenabouts_hardware.reader import FIELD_SCAN_SOURCE, FIELD_SCAN_US, Reader
from whenabouts_hardware.readers.em4100 import Em4100Decoder, tags

READER = Reader(Em4100Decoder, 9600, FIELD_SCAN_US, FIELD_SCAN_SOURCE, tags, reports_once=True)
