/* Waits before each lock of a file that is asked for: what lies between looking at a file and locking it takes long.
   Loaded by LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

static int waited(const char *name, int handle, int command, void *argument) {
    int (*real)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, name);
    if (command == F_SETLK) usleep(40000);
    return real(handle, command, argument);
}

int fcntl(int handle, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return waited("fcntl", handle, command, argument);
}

int fcntl64(int handle, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return waited("fcntl64", handle, command, argument);
}
