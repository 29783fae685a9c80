"""What a chat file says: values, reader, writer, edits. Pure: no IO, no clock, no model."""
