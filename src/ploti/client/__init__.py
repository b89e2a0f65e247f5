"""The SDK: every call of the API, for programs that wait and for programs that do not."""
