"""Readings and results as events of EPCIS 2.0 (GS1), in JSON-LD.

    reading with a key                 ObjectEvent, OBSERVE: the object was observed at the reader
    visit: a tag enters, leaves        ObjectEvent, OBSERVE, with the business step `arriving` or `departing`
    pair or match of one object        ObjectEvent, OBSERVE
    pair or match of several objects   AssociationEvent, OBSERVE: the object of the first place is the parent
    the same, of a rule about loads    AggregationEvent, OBSERVE: its user says that the first object contains the others

The standard keeps AggregationEvent for objects that are physically together until they are taken apart; a rule cannot know
that, so it is never chosen unasked. AssociationEvent is for objects that are linked, without containment.

What EPCIS has no field for is an extension with the prefix `whenabouts:`. `eventTime` is the middle of the interval in
which the event happened. The interval is in the sensor metadata of the standard, which repositories can be asked for, and
with all its microseconds in `whenabouts:earliest` and `whenabouts:latest`. `eventID` is GS1's hash of the event, so the same
result always has the same one.
"""
