/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One child process at a time.
 */
#include "base/files/subprocess.h"

#include "base/error.h"
#include "base/escape.h"
#include "base/files/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUOTED_MAX 600         /* bytes of its standard error to quote in a message */
#define OUTPUT_MAX 1073741824u /* output beyond this is dropped */
#define TICK_US 2000
#define US_PER_S 1000000
#define US_PER_MS 1000

static _Atomic(pid_t) running; /* the leader of its process group; 0: none */

/* A running child. */
typedef struct {
    const LhSubprocess *child;
    pid_t pid;
    int fds[2];        /* its standard output and error; -1 once closed */
    GString *texts[2]; /* their contents */
    gint64 end_us;     /* its deadline */
} Work;

void
lh_subprocess_kill(void)
{
    const pid_t pid = atomic_exchange(&running, 0);

    if (pid > 0)
        kill(-pid, SIGKILL);
}

/* Runs in the child before the program starts. The child leads a process group, so that its own
 * children end with it, and is killed if this process ends. */
static void
prepare_child(gpointer parent)
{
    setpgid(0, 0);
    signal(SIGXFSZ, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != GPOINTER_TO_INT(parent))
        _exit(1);
}

/* An anonymous file with @child's input, positioned at its start. -1 with errno. */
static int
open_input(const LhSubprocess *child)
{
    const int fd = memfd_create("input", MFD_CLOEXEC);

    if (fd < 0)
        return -1;
    if (lh_write_all(fd, child->input, child->input_length) && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool
start(Work *work, GError **error)
{
    const LhSubprocess *child = work->child;
    const int input = open_input(child);
    g_autoptr(GError) cause = NULL;

    if (input < 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "cannot run %s: %s", child->argv[0],
                    g_strerror(errno));
        return false;
    }
    g_spawn_async_with_pipes_and_fds(
        NULL, child->argv, NULL,
        G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_CLOEXEC_PIPES, prepare_child,
        GINT_TO_POINTER(getpid()), input, -1, -1, NULL, NULL, 0, &work->pid, NULL, &work->fds[0],
        &work->fds[1], &cause);
    close(input);
    if (cause == NULL) {
        atomic_store(&running, work->pid);
        return true;
    }
    if (cause->code == G_SPAWN_ERROR_NOENT)
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%s is not installed", child->argv[0]);
    else
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "cannot run %s: %s", child->argv[0],
                    cause->message);
    return false;
}

/* Reads what is available from stream @i. */
static void
take_output(Work *work, int i)
{
    char piece[65536];
    const ssize_t length = read(work->fds[i], piece, sizeof(piece));

    if (length > 0 && work->texts[i]->len < OUTPUT_MAX)
        g_string_append_len(work->texts[i], piece, length);
    if (length > 0 || (length < 0 && (errno == EINTR || errno == EAGAIN)))
        return;
    close(work->fds[i]);
    work->fds[i] = -1;
}

/* Reads until both streams end; false at the deadline. */
static bool
read_streams(Work *work)
{
    while (work->fds[0] >= 0 || work->fds[1] >= 0) {
        struct pollfd fds[2] = { { .fd = work->fds[0], .events = POLLIN },
                                 { .fd = work->fds[1], .events = POLLIN } };
        const gint64 left_us = work->end_us - g_get_monotonic_time();

        if (left_us <= 0)
            return false;
        if (poll(fds, 2, (int)MIN(left_us / US_PER_MS + 1, G_MAXINT)) <= 0)
            continue;
        for (int i = 0; i < 2; i++) {
            if (fds[i].revents != 0)
                take_output(work, i);
        }
    }
    return true;
}

/* Waits for the child to end; false at the deadline. */
static bool
wait_for_end(const Work *work, int *status)
{
    while (waitpid(work->pid, status, WNOHANG) == 0) {
        if (g_get_monotonic_time() >= work->end_us)
            return false;
        g_usleep(TICK_US);
    }
    return true;
}

/* The end of its messages. Caller frees. */
static char *
quote(const GString *said)
{
    const char *from = said->str + (said->len > QUOTED_MAX ? said->len - QUOTED_MAX : 0);
    g_autofree char *text = lh_escaped_lines(from);

    return g_strdup(*g_strstrip(text) != '\0' ? text : "it prints nothing");
}

static bool
judge(const Work *work, int status, GError **error)
{
    g_autofree char *said = quote(work->texts[1]);
    const char *name = work->child->argv[0];

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (WIFSIGNALED(status))
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%s was ended by signal %d (%s): %s", name,
                    WTERMSIG(status), g_strsignal(WTERMSIG(status)), said);
    else
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%s failed with status %d: %s", name,
                    WEXITSTATUS(status), said);
    return false;
}

static bool
run(Work *work, GError **error)
{
    int status = 0;
    const bool ended = read_streams(work) && wait_for_end(work, &status);

    for (int i = 0; i < 2; i++) {
        if (work->fds[i] >= 0)
            close(work->fds[i]);
    }
    if (ended) {
        atomic_store(&running, 0);
        return judge(work, status, error);
    }
    lh_subprocess_kill();
    waitpid(work->pid, &status, 0);
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%s did not end within %u s and was killed",
                work->child->argv[0], work->child->deadline_s);
    return false;
}

/* ---- questions ---- */

#define ANSWER '+' /* first byte of the text */
#define NO_ANSWER '-'

/* Runs in the child: answers and exits. Its standard output goes to its standard error. */
G_GNUC_NORETURN static void
answer(LhQuestion question, const void *data, const int out[2], const int err[2], pid_t parent)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    g_autofree char *whole = NULL;

    prepare_child(GINT_TO_POINTER(parent));
    if (dup2(err[1], STDOUT_FILENO) < 0 || dup2(err[1], STDERR_FILENO) < 0)
        _exit(1);
    text = question(data, &error);
    whole = g_strdup_printf("%c%s", text != NULL ? ANSWER : NO_ANSWER,
                            text != NULL ? text : error->message);
    _exit(lh_write_all(out[1], whole, strlen(whole)) ? 0 : 1);
}

/* Makes a pipe; false with @error. */
static bool
open_pipe(int fds[2], const char *name, GError **error)
{
    if (pipe2(fds, O_CLOEXEC) == 0)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%s: %s", name, g_strerror(errno));
    return false;
}

static void
close_pipe(const int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

static bool
start_question(Work *work, LhQuestion question, const void *data, GError **error)
{
    const char *name = work->child->argv[0];
    const pid_t parent = getpid();
    int out[2], err[2];

    if (!open_pipe(out, name, error))
        return false;
    if (!open_pipe(err, name, error)) {
        close_pipe(out);
        return false;
    }
    work->pid = fork();
    if (work->pid == 0)
        answer(question, data, out, err, parent);
    if (work->pid < 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%s: %s", name, g_strerror(errno));
        close_pipe(out);
        close_pipe(err);
        return false;
    }
    atomic_store(&running, work->pid);
    close(out[1]);
    close(err[1]);
    work->fds[0] = out[0];
    work->fds[1] = err[0];
    return true;
}

char *
lh_subprocess_ask(const char *name, LhQuestion question, const void *data, unsigned deadline_s,
                  GError **error)
{
    const char *const argv[] = { name, NULL };
    const LhSubprocess child = { .argv = argv, .deadline_s = deadline_s };
    g_autoptr(GString) said = g_string_new(NULL);
    g_autoptr(GString) errors = g_string_new(NULL);
    Work work = { .child = &child,
                  .texts = { said, errors },
                  .end_us = g_get_monotonic_time() + (gint64)deadline_s * US_PER_S };

    if (!start_question(&work, question, data, error) || !run(&work, error))
        return NULL;
    if (said->str[0] == ANSWER)
        return g_strdup(said->str + 1);
    g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME, said->len > 0 ? said->str + 1 : name);
    return NULL;
}

/* ---- programs ---- */

bool
lh_subprocess_run(const LhSubprocess *child, GString *output, GError **error)
{
    g_autoptr(GString) errors = g_string_new(NULL);
    Work work = { .child = child,
                  .texts = { output, errors },
                  .end_us = g_get_monotonic_time() + (gint64)child->deadline_s * US_PER_S };

    return start(&work, error) && run(&work, error);
}
