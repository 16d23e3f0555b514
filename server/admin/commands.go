package admin

// maxCommandBytes bounds the body of a command.
const maxCommandBytes = 16 << 10
