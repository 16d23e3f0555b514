package api

// SocketHeader is the header of an answer 401 to a request from the machine of
// the daemon: the path of the unix socket that takes it.
const SocketHeader = "Rld-Admin-Socket"

// AddrHeader is the header of a request that follows a SocketHeader: the
// address that sent it there. A daemon with another address refuses the
// request. So a process that listens at the address of a daemon that is down
// sends no command to another daemon.
const AddrHeader = "Rld-Admin-Addr"
