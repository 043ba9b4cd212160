/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces the program in a served test (served.c): sends the line to the server, and ends with its
 * exit status. Output to a pipe goes through a file in memory, since a reader may leave, which
 * would end a process. The program itself is run if standard input is a pipe, since its writer may
 * be a line, too, or if a line names /dev/stdout, which differs for a file in memory. Contains no
 * sanitizer and nothing of the program.
 */
#include "served.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;

static void
fail(const char *what)
{
    perror(what);
    exit(SERVED_FAILED);
}

static bool
is_pipe(int stream)
{
    struct stat info;

    return fstat(stream, &info) != 0 || S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode);
}

static bool
needs_process(char *const *words)
{
    bool needs = is_pipe(STDIN_FILENO);

    for (; *words != NULL; words++)
        needs = needs || strncmp(*words, "/dev/std", strlen("/dev/std")) == 0;
    return needs;
}

static bool
are_same(int stream, int other)
{
    struct stat info;
    struct stat others;

    return fstat(stream, &info) == 0 && fstat(other, &others) == 0 &&
           info.st_dev == others.st_dev && info.st_ino == others.st_ino;
}

/* A file in memory for a stream that is a pipe, shared if both are the same pipe; else the
 * stream. */
static int
through_memory(int stream)
{
    int file = stream;

    if (is_pipe(stream))
        file = memfd_create("stream", MFD_CLOEXEC);
    if (file < 0)
        fail("memfd_create");
    return file;
}

/* Copies what a line wrote to a file in memory to the stream that it was meant for. */
static void
hand_on(int file, int stream)
{
    char bytes[65536];
    ssize_t got;

    if (file == stream)
        return;
    lseek(file, 0, SEEK_SET);
    while ((got = read(file, bytes, sizeof(bytes))) > 0) {
        for (ssize_t done = 0, wrote; done < got; done += wrote) {
            wrote = write(stream, &bytes[done], (size_t)(got - done));
            if (wrote < 0)
                fail("write");
        }
    }
}

static void
send_streams(int asked, const int *streams, const char *folder)
{
    const size_t bytes = SERVED_STREAMS * sizeof(*streams);
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(SERVED_STREAMS * sizeof(int))];
    } control = { 0 };
    struct iovec part = { .iov_base = (char *)folder, .iov_len = strlen(folder) + 1 };
    const struct msghdr message = { .msg_iov = &part,
                                    .msg_iovlen = 1,
                                    .msg_control = &control,
                                    .msg_controllen = sizeof(control) };

    control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(bytes),
                                       .cmsg_level = SOL_SOCKET,
                                       .cmsg_type = SCM_RIGHTS };
    memcpy(CMSG_DATA(&control.header), streams, bytes);
    if (sendmsg(asked, &message, MSG_NOSIGNAL) != (ssize_t)part.iov_len)
        fail("sendmsg");
}

static void
send_word(FILE *line, const char *word)
{
    fputs(word, line);
    putc('\0', line);
}

int
main(int argc, char **argv)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const char *socket_path = getenv(SERVED_SOCKET);
    const char *program = getenv(SERVED_PROGRAM);
    const int asked = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char *folder = getcwd(NULL, 0);
    int streams[SERVED_STREAMS];
    unsigned char status;
    FILE *line;

    if (program == NULL || socket_path == NULL || strlen(socket_path) >= sizeof(address.sun_path))
        fail(SERVED_SOCKET " and " SERVED_PROGRAM);
    argv[0] = (char *)program;
    if (folder == NULL || needs_process(argv)) {
        execv(program, argv);
        fail(program);
    }
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
    if (asked < 0 || connect(asked, (const struct sockaddr *)&address, sizeof(address)) != 0)
        fail(socket_path);
    streams[0] = STDIN_FILENO;
    streams[1] = through_memory(STDOUT_FILENO);
    streams[2] =
        are_same(STDOUT_FILENO, STDERR_FILENO) ? streams[1] : through_memory(STDERR_FILENO);
    send_streams(asked, streams, folder);
    line = fdopen(asked, "w");
    if (line == NULL)
        fail("fdopen");
    fprintf(line, "%d", argc);
    putc('\0', line);
    for (int i = 0; i < argc; i++)
        send_word(line, argv[i]);
    for (char **variable = environ; *variable != NULL; variable++)
        send_word(line, *variable);
    if (fflush(line) != 0 || shutdown(asked, SHUT_WR) != 0)
        fail("shutdown");
    if (read(asked, &status, 1) != 1) {
        dprintf(streams[2], "ask: the program ended in the middle of this line\n");
        status = SERVED_FAILED;
    }
    hand_on(streams[1], STDOUT_FILENO);
    if (streams[2] != streams[1])
        hand_on(streams[2], STDERR_FILENO);
    return status;
}
