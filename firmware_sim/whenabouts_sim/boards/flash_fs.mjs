// A file system for Emscripten that is a folder of the host: every write reaches the folder before it returns.
//
// So the flash of a board outlives its process, however the process ends. littlefs makes a write visible only when the file is
// flushed; here a power cut between two writes, or within one, leaves the bytes written so far, which is harder on the firmware.

import fs from "node:fs";
import path from "node:path";
import { WASI } from "./errors.mjs";

// FS: the file system of the VM. write(fd, data, position): writes to a file of the flash.
export function flashFs(FS, folder, write) {
  const hostPath = (node) => (node.parent === node ? folder : path.join(hostPath(node.parent), node.name));

  function guarded(work) {
    try {
      return work();
    } catch (error) {
      if (error.code === undefined) throw error;
      throw new FS.ErrnoError(WASI[error.code] ?? WASI.EIO);
    }
  }

  function nodeFor(parent, name, mode) {
    const node = FS.createNode(parent, name, mode, 0);
    node.node_ops = nodeOps;
    node.stream_ops = streamOps;
    return node;
  }

  const nodeOps = {
    getattr(node) {
      const stats = guarded(() => fs.lstatSync(hostPath(node)));
      return {
        dev: 1, ino: node.id, mode: stats.mode, nlink: 1, uid: 0, gid: 0, rdev: 0, size: stats.size, atime: stats.atime,
        mtime: stats.mtime, ctime: stats.ctime, blksize: 4096, blocks: Math.ceil(stats.size / 4096),
      };
    },
    setattr(node, attributes) {
      if (attributes.size !== undefined) guarded(() => fs.truncateSync(hostPath(node), attributes.size));
    },
    lookup(parent, name) {
      return nodeFor(parent, name, guarded(() => fs.lstatSync(path.join(hostPath(parent), name))).mode);
    },
    mknod(parent, name, mode) {
      const at = path.join(hostPath(parent), name);
      guarded(() => (FS.isDir(mode) ? fs.mkdirSync(at) : fs.closeSync(fs.openSync(at, "w"))));
      return nodeFor(parent, name, mode);
    },
    rename(node, folderNode, name) {
      guarded(() => fs.renameSync(hostPath(node), path.join(hostPath(folderNode), name)));
      node.name = name;
    },
    unlink(parent, name) { guarded(() => fs.unlinkSync(path.join(hostPath(parent), name))); },
    rmdir(parent, name) { guarded(() => fs.rmdirSync(path.join(hostPath(parent), name))); },
    readdir(node) { return [".", "..", ...guarded(() => fs.readdirSync(hostPath(node)))]; },
    symlink() { throw new FS.ErrnoError(WASI.EPERM); },
  };

  const streamOps = {
    open(stream) {
      if (FS.isFile(stream.node.mode)) stream.file = guarded(() => fs.openSync(hostPath(stream.node), stream.flags & 3 ? "r+" : "r"));
    },
    close(stream) { if (stream.file !== undefined) fs.closeSync(stream.file); },
    read(stream, buffer, offset, length, position) {
      return guarded(() => fs.readSync(stream.file, new Uint8Array(buffer.buffer, buffer.byteOffset + offset, length), 0, length, position));
    },
    write(stream, buffer, offset, length, position) {
      const data = new Uint8Array(buffer.buffer, buffer.byteOffset + offset, length);
      return guarded(() => write(stream.file, data, position));
    },
    llseek(stream, offset, whence) {
      const base = whence === 1 ? stream.position : whence === 2 ? guarded(() => fs.fstatSync(stream.file).size) : 0;
      if (base + offset < 0) throw new FS.ErrnoError(WASI.EINVAL);
      return base + offset;
    },
    fsync(stream) { guarded(() => fs.fsyncSync(stream.file)); return 0; },
  };

  return { mount: () => nodeFor(null, "/", fs.lstatSync(folder).mode) };
}
