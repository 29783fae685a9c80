"""The content of a chat file: values, reader, writer, edits. Pure: no IO, no clock, no model."""
