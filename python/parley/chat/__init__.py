"""The content of a chat file: values, reader, writer, edits. Pure: does not use files, the network,
a clock or a model.
"""
