// A worker that keeps sockets open to one name, and opens them again as they are closed: a thread of its own, so that
// who asks for pages meanwhile is not slowed down by them. workerData: host, name, callers (addresses of this
// machine), most.
import net from 'node:net'
import { workerData } from 'node:worker_threads'

const { host, name, callers, most } = workerData
const open = new Set()

function more() {
  while (open.size < most) {
    const socket = net.connect({ host, port: 80, localAddress: callers[open.size % callers.length] }, () => socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\nX: `))
    open.add(socket)
    socket.on('error', () => {}).on('close', () => open.delete(socket)).resume()
  }
}

setInterval(more, 250)
more()
