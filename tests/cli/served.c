/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a test of the command line with a single process for all lines of the program:
 *
 *     served ASK PROGRAM TEST [ARGUMENT...]
 *
 * TEST is run with ASK (ask.c) in place of the program: `TEST ASK ARGUMENT...`. ASK sends its
 * arguments, streams, folder and environment over a socket, and this process runs them with the
 * program's main(), linked under another name. With sanitizers and coverage counters a process
 * takes a quarter of a second to start and end, a line hardly anything. Leaks are detected when
 * this process ends. The exit status is that of TEST, or SERVED_FAILED.
 */
#include "served.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_MS 50 /* polling interval for the end of the test */

extern char **environ;

/* main() of src/cli/main.c. */
int longhaul_main(int argc, char **argv);

/* A line as sent by ask.c. */
typedef struct {
    int streams[SERVED_STREAMS];
    GByteArray *text; /* owned */
} Line;

G_GNUC_NORETURN static void
fail(const char *what)
{
    fprintf(stderr, "served: %s: %s\n", what, g_strerror(errno));
    exit(SERVED_FAILED);
}

static void
receive_line(int asked, Line *line)
{
    char bytes[4096];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(line->streams))];
    } control;
    struct iovec part = { .iov_base = bytes, .iov_len = sizeof(bytes) };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    ssize_t got = recvmsg(asked, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;

    if (header == NULL || header->cmsg_len != CMSG_LEN(sizeof(line->streams)))
        fail("a line without streams");
    memcpy(line->streams, CMSG_DATA(header), sizeof(line->streams));
    while (got > 0) {
        g_byte_array_append(line->text, (const guint8 *)bytes, (guint)got);
        got = read(asked, bytes, sizeof(bytes));
    }
    if (got != 0)
        fail("a line without an end");
}

static void
take_streams(const int *streams)
{
    for (int i = 0; i < SERVED_STREAMS; i++) {
        if (dup2(streams[i], i) < 0)
            fail("dup2");
    }
}

/* Runs a line as if in a process of its own. Returns its exit status. */
static int
run_line(const Line *line)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    g_autoptr(GPtrArray) environment = g_ptr_array_new();
    char **const own_environment = environ;
    const char *folder;
    guint argc;
    int status;

    for (guint at = 0; at < line->text->len;) {
        char *word = (char *)&line->text->data[at];

        g_ptr_array_add(words, word);
        at += (guint)strlen(word) + 1;
    }
    folder = g_ptr_array_index(words, 0);
    argc = (guint)g_ascii_strtoull(g_ptr_array_index(words, 1), NULL, 10);
    for (guint i = 2 + argc; i < words->len; i++)
        g_ptr_array_add(environment, g_ptr_array_index(words, i));
    g_ptr_array_add(environment, NULL);
    g_ptr_array_set_size(words, (gint)(2 + argc));
    g_ptr_array_add(words, NULL);
    if (g_chdir(folder) != 0)
        fail(folder);
    take_streams(line->streams);
    environ = (char **)environment->pdata;
    status = longhaul_main((int)argc, (char **)&words->pdata[2]);
    environ = own_environment;
    fflush(stdout);
    __fpurge(stdout); /* unread output */
    clearerr(stdout);
    return status;
}

static void
serve(int asked, const int *own_streams)
{
    Line line = { .text = g_byte_array_new() };
    unsigned char status;

    receive_line(asked, &line);
    status = (unsigned char)run_line(&line);
    take_streams(own_streams);
    for (int i = 0; i < SERVED_STREAMS; i++)
        close(line.streams[i]);
    g_byte_array_unref(line.text);
    if (write(asked, &status, 1) != 1)
        fail("an answer");
    close(asked);
}

static int
listen_at(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
    if (listening < 0 || bind(listening, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listening, SOMAXCONN) != 0)
        fail(path);
    return listening;
}

/* served ASK PROGRAM TEST ARGUMENT... starts TEST ASK ARGUMENT... */
static pid_t
start_test(char **argv)
{
    const pid_t pid = fork();

    if (pid != 0)
        return pid;
    argv[2] = argv[3];
    argv[3] = argv[1];
    execv(argv[2], &argv[2]);
    fail(argv[2]);
}

/* Serves lines until the test ends. Returns its exit status. */
static int
serve_until_end(int listening, pid_t test)
{
    struct pollfd lines = { .fd = listening, .events = POLLIN };
    int own_streams[SERVED_STREAMS];
    int status = 0;

    for (int i = 0; i < SERVED_STREAMS; i++)
        own_streams[i] = fcntl(i, F_DUPFD_CLOEXEC, SERVED_STREAMS);
    while (waitpid(test, &status, WNOHANG) == 0) {
        if (poll(&lines, 1, POLL_MS) > 0)
            serve(accept4(listening, NULL, NULL, SOCK_CLOEXEC), own_streams);
    }
    for (int i = 0; i < SERVED_STREAMS; i++)
        close(own_streams[i]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : SERVED_FAILED;
}

int
main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("longhaul-XXXXXX", &error);
    g_autofree char *program = argc < 4 ? NULL : g_canonicalize_filename(argv[2], NULL);
    g_autofree char *path = NULL;
    int listening;
    pid_t test;
    int status;

    if (argc < 4 || folder == NULL) {
        fprintf(stderr, "served: %s\n",
                error != NULL ? error->message : "served ASK PROGRAM TEST [ARGUMENT...]");
        return SERVED_FAILED;
    }
    path = g_build_filename(folder, "socket", NULL);
    listening = listen_at(path);
    g_setenv(SERVED_SOCKET, path, TRUE);
    g_setenv(SERVED_PROGRAM, program, TRUE);
    test = start_test(argv);
    if (test < 0)
        fail("fork");
    status = serve_until_end(listening, test);
    close(listening);
    g_unlink(path);
    g_rmdir(folder);
    return status;
}
