"""What has landed, as the timeline needs it: lanes, counts for each pixel, single readings."""
