"""The folder of recorded scenarios on the disk: files, locks, and what is not written yet."""
