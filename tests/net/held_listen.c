/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library preloaded into a rank. After the rank begins to listen for other ranks' data it is held
 * until a file exists; the port is written to another file:
 *
 *     LD_PRELOAD=held_listen.so LISTEN_HELD_UNTIL=file LISTEN_HELD_PORT=file MASTER_PORT=...
 *
 * This lets strangers connect before any member calls. The start port is not held.
 */
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_US 2000

static void
write_port(const char *path, unsigned port)
{
    char draft[4096];
    FILE *file;

    snprintf(draft, sizeof(draft), "%s.draft", path);
    file = fopen(draft, "w");
    if (file == NULL || fprintf(file, "%u\n", port) < 0 || fclose(file) != 0 ||
        rename(draft, path) != 0)
        abort();
}

/* Replaces libc's. */
int
listen(int socket, int backlog)
{
    const char *until = getenv("LISTEN_HELD_UNTIL"), *start = getenv("MASTER_PORT");
    struct sockaddr_in6 at = { .sin6_family = AF_UNSPEC }; /* room for both kinds */
    socklen_t length = sizeof(at);
    char before[16] = "";
    int (*libc)(int, int);
    int status;

    *(void **)&libc = dlsym(RTLD_NEXT, "listen");
    status = libc(socket, backlog);
    if (status != 0 || until == NULL || getsockname(socket, (struct sockaddr *)&at, &length) != 0)
        return status;
    snprintf(before, sizeof(before), "%d", ntohs(at.sin6_port) - 1);
    if (start == NULL || strcmp(before, start) == 0)
        return status;
    write_port(getenv("LISTEN_HELD_PORT"), ntohs(at.sin6_port));
    while (access(until, F_OK) != 0)
        usleep(LOOK_US);
    return status;
}
