// Error numbers: the C library of the VM uses those of WASI, boards and MicroPython's `errno` those of Linux.

import os from "node:os";

export const WASI = {
  EACCES: 2, EAGAIN: 6, EBADF: 8, EBUSY: 10, EEXIST: 20, EFBIG: 22, EINVAL: 28, EIO: 29, EISDIR: 31, ELOOP: 32, EMFILE: 33,
  ENAMETOOLONG: 37, ENFILE: 41, ENODEV: 43, ENOENT: 44, ENOMEM: 48, ENOSPC: 51, ENOSYS: 52, ENOTDIR: 54, ENOTEMPTY: 55,
  EPERM: 63, EPIPE: 64, EROFS: 69, ESPIPE: 70, EXDEV: 75,
};

export const LINUX = os.constants.errno;
const LINUX_BY_WASI = new Map(Object.entries(WASI).map(([name, number]) => [number, LINUX[name]]));

// The imports of the VM; its file system calls are wrapped to return the error numbers of boards.
export function withLinuxErrors(imports) {
  const wrapped = {};
  for (const [module, functions] of Object.entries(imports)) {
    wrapped[module] = { ...functions };
    for (const [name, call] of Object.entries(functions)) {
      if (name.startsWith("__syscall_"))
        wrapped[module][name] = (...given) => {
          const result = call(...given);
          return result < 0 ? -(LINUX_BY_WASI.get(-result) ?? -result) : result;
        };
      else if (name.startsWith("fd_"))
        wrapped[module][name] = (...given) => {
          const result = call(...given);
          return LINUX_BY_WASI.get(result) ?? result;
        };
    }
  }
  return wrapped;
}
