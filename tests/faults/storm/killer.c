/* Ends the process by SIGKILL at its n-th write, fsync, rename, link or unlink below a folder; a large write
   is torn between two pages, as the kernel may do it: a stream in the middle, a block of a database after its first
   page, where its checksum stands.
   Loaded by LD_PRELOAD; says nothing until storm_arm is called. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static size_t length;
static long done, last;

void storm_arm(const char *below, long at) {
    strncpy(folder, below, sizeof folder - 1);
    length = strlen(folder);
    done = 0;
    last = at;
}

long storm_count(void) { return done; }

static int below(const char *path) { return length && path && strncmp(path, folder, length) == 0; }

static int open_below(int handle) {
    char name[64], path[PATH_MAX];
    if (!length || handle < 3) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
    ssize_t size = syscall(SYS_readlink, name, path, sizeof path - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return below(path);
}

static int named_below(int at, const char *path) { return length && path && (path[0] == '/' ? below(path) : open_below(at)); }

static int due(int counts) { return counts && __sync_add_and_fetch(&done, 1) == last; }

static void end(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

ssize_t write(int handle, const void *from, size_t size) {
    if (due(open_below(handle))) { syscall(SYS_write, handle, from, size / 2 & ~4095UL); end(); }
    return syscall(SYS_write, handle, from, size);
}

ssize_t pwrite64(int handle, const void *from, size_t size, off64_t place) {
    if (due(open_below(handle))) { syscall(SYS_pwrite64, handle, from, size > 4096 ? 4096 : 0, place); end(); }
    return syscall(SYS_pwrite64, handle, from, size, place);
}
ssize_t pwrite(int handle, const void *from, size_t size, off_t place) { return pwrite64(handle, from, size, place); }

ssize_t writev(int handle, const struct iovec *parts, int count) {
    if (due(open_below(handle))) end();
    return syscall(SYS_writev, handle, parts, count);
}

int fsync(int handle) {
    if (due(open_below(handle))) end();
    return syscall(SYS_fsync, handle);
}
int fdatasync(int handle) {
    if (due(open_below(handle))) end();
    return syscall(SYS_fdatasync, handle);
}
int ftruncate64(int handle, off64_t size) {
    if (due(open_below(handle))) end();
    return syscall(SYS_ftruncate, handle, size);
}
int ftruncate(int handle, off_t size) { return ftruncate64(handle, size); }

int rename(const char *from, const char *to) {
    if (due(named_below(AT_FDCWD, to))) end();
    return syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}
int renameat(int at, const char *from, int into, const char *to) {
    if (due(named_below(into, to))) end();
    return syscall(SYS_renameat, at, from, into, to);
}
int link(const char *from, const char *to) {
    if (due(named_below(AT_FDCWD, to))) end();
    return syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int linkat(int at, const char *from, int into, const char *to, int how) {
    if (due(named_below(into, to))) end();
    return syscall(SYS_linkat, at, from, into, to, how);
}
int unlink(const char *path) {
    if (due(named_below(AT_FDCWD, path))) end();
    return syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
int unlinkat(int at, const char *path, int how) {
    if (due(named_below(at, path))) end();
    return syscall(SYS_unlinkat, at, path, how);
}
