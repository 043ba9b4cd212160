/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes system calls fail as given by FAULT, for programs that run with this library in LD_PRELOAD.
 * Affects only regular files that are open for writing and are no standard stream.
 *
 *     FAULT=disk:N:ERROR    files have room for N bytes in total, then write() fails with ERROR
 *     FAULT=short           write() takes 7 bytes at a time, and every other call is interrupted
 *     FAULT=CALL:ERROR      that call fails: create, fsync, close, rename, fchmod
 *     FAULT=stall           write() never returns
 *
 * ERROR is a number of errno.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHORT_BYTES 7

static void *
real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static const char *
fault(void)
{
    const char *text = getenv("FAULT");

    return text != NULL ? text : "";
}

static int
number_after(const char *colon)
{
    return (int)strtol(colon + 1, NULL, 10);
}

/* Whether FAULT is @call; if so, sets errno. */
static bool
fails(const char *call)
{
    const size_t length = strlen(call);

    if (strncmp(fault(), call, length) != 0 || fault()[length] != ':')
        return false;
    errno = number_after(fault() + length);
    return true;
}

/* A regular file that is open for writing and is no standard stream. */
static bool
is_output(int fd)
{
    struct stat info, stream;
    const int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || fstat(fd, &info) != 0 ||
        !S_ISREG(info.st_mode) || info.st_nlink == 0)
        return false;
    for (int i = 0; i <= STDERR_FILENO; i++) {
        if (fstat(i, &stream) == 0 && stream.st_dev == info.st_dev && stream.st_ino == info.st_ino)
            return false;
    }
    return true;
}

static size_t
room(size_t count)
{
    static size_t written;
    const size_t all = strtoul(fault() + strlen("disk:"), NULL, 10);
    const size_t taken = count < all - written ? count : all - written;

    written += taken;
    return taken;
}

ssize_t
write(int fd, const void *bytes, size_t count)
{
    ssize_t (*call)(int, const void *, size_t);
    static unsigned calls;

    *(void **)&call = real("write");
    if (!is_output(fd))
        return call(fd, bytes, count);
    if (strcmp(fault(), "stall") == 0) {
        for (;;)
            pause();
    }
    if (strcmp(fault(), "short") == 0) {
        if (calls++ % 2 == 0) {
            errno = EINTR;
            return -1;
        }
        return call(fd, bytes, count < SHORT_BYTES ? count : SHORT_BYTES);
    }
    if (strncmp(fault(), "disk:", strlen("disk:")) == 0) {
        count = room(count);
        if (count == 0) {
            errno = number_after(strrchr(fault(), ':'));
            return -1;
        }
    }
    return call(fd, bytes, count);
}

int
open(const char *path, int flags, ...)
{
    int (*call)(const char *, int, ...);
    mode_t mode = 0;
    va_list args;

    *(void **)&call = real("open");
    va_start(args, flags);
    if ((flags & O_CREAT) != 0)
        mode = va_arg(args, mode_t);
    va_end(args);
    if ((flags & O_CREAT) != 0 && fails("create"))
        return -1;
    return call(path, flags, mode);
}

int
fsync(int fd)
{
    int (*call)(int);

    *(void **)&call = real("fsync");
    return is_output(fd) && fails("fsync") ? -1 : call(fd);
}

int
fchmod(int fd, mode_t mode)
{
    int (*call)(int, mode_t);

    *(void **)&call = real("fchmod");
    return is_output(fd) && fails("fchmod") ? -1 : call(fd, mode);
}

int
close(int fd)
{
    int (*call)(int);
    const bool output = is_output(fd);
    int result;

    *(void **)&call = real("close");
    result = call(fd);
    return output && fails("close") ? -1 : result;
}

int
rename(const char *from, const char *to)
{
    int (*call)(const char *, const char *);

    *(void **)&call = real("rename");
    return fails("rename") ? -1 : call(from, to);
}
