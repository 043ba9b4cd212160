/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes results.
 */
#include "base/files/output.h"

#include "base/error.h"
#include "base/escape.h"
#include "base/files/atomic_file.h"
#include "base/files/file_uses.h"
#include "base/files/real_path.h"
#include "base/files/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE_NEW 0666     /* less the umask */
#define MODE_PRIVATE 0600 /* until the file gets the mode of the one that it replaces */
#define MODE_MASK 07777

/* --- errors -------------------------------------------------------------------------------------
 */

static bool
fail_output(const char *what, int cause, GError **error)
{
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "cannot write %s: %s", what, g_strerror(cause));
    return false;
}

/* ENOENT refers to the folder: the file itself need not exist. */
static bool
fail_path(const char *path, int cause, GError **error)
{
    g_autofree char *shown = lh_escaped_line(path);
    g_autofree char *folder = g_path_get_dirname(shown);

    if (cause != ENOENT || *path == '\0')
        return fail_output(*path == '\0' ? "a file without a name" : shown, cause, error);
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "cannot write %s: there is no folder %s", shown,
                folder);
    return false;
}

/* --- targets
 * ------------------------------------------------------------------------------------ */

/* False with errno. */
static bool
target_allows(const LhRealPath *target)
{
    if (!target->exists)
        return true;
    if (S_ISDIR(target->info.st_mode)) {
        errno = EISDIR;
        return false;
    }
    return faccessat(AT_FDCWD, target->path, W_OK, AT_EACCESS) == 0;
}

static bool
same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool
lh_output_is_stream(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 &&
           (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

bool
lh_output_refuse(const char *option, const char *path, const char *allowed, GError **error)
{
    g_autofree char *shown = lh_escaped_line(path);

    g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "%s: \"%s\" is not allowed; allowed: %s", option,
                shown, allowed);
    return false;
}

/* --- writing ------------------------------------------------------------------------------------
 */

/* Closes @fd; reports the first failure. */
static bool
finish(int fd, bool ok)
{
    const int cause = errno;
    const bool closed = close(fd) == 0;

    if (!ok)
        errno = cause;
    return ok && closed;
}

/* Standard output under another name may be impossible to open: a socket is. */
static int
open_special(const LhRealPath *target)
{
    struct stat info;

    if (fstat(STDOUT_FILENO, &info) == 0 && same_file(&info, &target->info))
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    return open(target->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

static bool
write_special(const LhRealPath *target, const char *text, gsize length)
{
    const int fd = open_special(target);

    return fd >= 0 && finish(fd, lh_write_all(fd, text, length));
}

/* Reserves space for @length bytes, where the file system supports it. */
static bool
reserve(int fd, off_t length, off_t length_before)
{
    const int cause = length == 0 ? 0 : posix_fallocate(fd, 0, length);

    if (cause != ENOSPC && cause != EFBIG && cause != EDQUOT)
        return true;
    if (ftruncate(fd, length_before) != 0)
        return false;
    errno = cause;
    return false;
}

/* Overwrites a file, under a lock. */
static bool
overwrite(const char *path, const char *text, gsize length)
{
    const int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
    struct stat info;

    if (fd < 0)
        return false;
    flock(fd, LOCK_EX); /* without a lock where locking is impossible */
    return finish(fd, fstat(fd, &info) == 0 && reserve(fd, (off_t)length, info.st_size) &&
                          lh_write_all(fd, text, length) && ftruncate(fd, (off_t)length) == 0 &&
                          lh_sync(fd));
}

/* Gives the draft the owner and mode of the file that it replaces; false with errno, EPERM if that
 * is not permitted. */
static bool
inherit(const LhAtomicFile *draft, const struct stat *before)
{
    struct stat info;

    if (fstat(draft->fd, &info) != 0)
        return false;
    if ((info.st_uid != before->st_uid || info.st_gid != before->st_gid) &&
        fchown(draft->fd, before->st_uid, before->st_gid) != 0)
        return false;
    return fchmod(draft->fd, before->st_mode & MODE_MASK) == 0;
}

static LhAtomicFile *
new_draft(const LhRealPath *target)
{
    LhAtomicFile *draft;

    if (target->exists && target->info.st_nlink > 1) {
        errno = EMLINK;
        return NULL;
    }
    draft = lh_atomic_file_new(target->path, target->exists ? MODE_PRIVATE : MODE_NEW);
    if (draft == NULL || !target->exists || inherit(draft, &target->info))
        return draft;
    lh_atomic_file_discard(draft);
    return NULL;
}

static bool
replace(const LhRealPath *target, const char *text, gsize length)
{
    LhAtomicFile *draft = new_draft(target);

    if (draft == NULL)
        return false;
    if (!lh_write_all(draft->fd, text, length)) {
        lh_atomic_file_discard(draft);
        return false;
    }
    return lh_atomic_file_rename(draft, target->path);
}

/* Whether to overwrite a file after replacing it failed with errno. */
static bool
may_overwrite(const LhRealPath *target)
{
    return target->exists && (errno == EMLINK || errno == EACCES || errno == EPERM ||
                              errno == EROFS || errno == EBUSY);
}

bool
lh_output_check(const char *path, GError **error)
{
    g_auto(LhRealPath) target = { .path = NULL };
    LhAtomicFile *draft = NULL;

    if (!lh_real_path_find(&target, path) || !target_allows(&target))
        return fail_path(path, errno, error);
    if (lh_real_path_is_special(&target))
        return true;
    draft = new_draft(&target);
    if (draft != NULL)
        lh_atomic_file_discard(draft);
    return draft != NULL || may_overwrite(&target) || fail_path(path, errno, error);
}

bool
lh_output_file(const char *path, const char *text, gsize length, GError **error)
{
    g_auto(LhRealPath) target = { .path = NULL };
    bool ok;

    if (!lh_file_uses_check_write(path, error))
        return false;
    ok = lh_real_path_find(&target, path) && target_allows(&target);
    if (ok && lh_real_path_is_special(&target))
        ok = write_special(&target, text, length);
    else if (ok)
        ok = replace(&target, text, length) ||
             (may_overwrite(&target) && overwrite(target.path, text, length));
    return ok || fail_path(path, errno, error);
}

/* --- piece by piece -----------------------------------------------------------------------------
 */

struct _LhOutputStream {
    char *path;
    LhRealPath target;
    LhAtomicFile *draft; /* for a replaced file; else NULL */
    int fd;              /* of the draft, the special file, or a temporary one */
    bool aside;
    int cause; /* errno of the first failure; 0: none */
};

/* Opens a temporary file without a name. -1 with errno. */
static int
open_aside(void)
{
    g_autofree char *path = NULL;
    const int fd = g_file_open_tmp(NULL, &path, NULL);

    if (fd < 0)
        errno = EIO;
    else
        unlink(path);
    return fd;
}

/* False with errno. */
static bool
open_stream(LhOutputStream *stream)
{
    if (!lh_real_path_find(&stream->target, stream->path) || !target_allows(&stream->target))
        return false;
    if (lh_real_path_is_special(&stream->target)) {
        stream->fd = open(stream->target.path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return stream->fd >= 0;
    }
    stream->draft = new_draft(&stream->target);
    if (stream->draft != NULL) {
        stream->fd = stream->draft->fd;
        return true;
    }
    if (!may_overwrite(&stream->target))
        return false;
    stream->aside = true;
    stream->fd = open_aside();
    return stream->fd >= 0;
}

static void
stream_free(LhOutputStream *stream)
{
    lh_real_path_clear(&stream->target);
    g_free(stream->path);
    g_free(stream);
}

LhOutputStream *
lh_output_open(const char *path, GError **error)
{
    LhOutputStream *stream;

    if (!lh_file_uses_check_write(path, error))
        return NULL;
    stream = g_new0(LhOutputStream, 1);
    stream->path = g_strdup(path);
    if (open_stream(stream))
        return stream;
    fail_path(path, errno, error);
    stream_free(stream);
    return NULL;
}

void
lh_output_write(LhOutputStream *stream, const char *text, gsize length)
{
    if (stream->cause == 0 && !lh_write_all(stream->fd, text, length))
        stream->cause = errno;
}

/* Overwrites the file with the temporary one. False with errno. */
static bool
copy_aside(const LhOutputStream *stream)
{
    g_autoptr(GMappedFile) written = g_mapped_file_new_from_fd(stream->fd, FALSE, NULL);

    if (written == NULL) {
        errno = EIO;
        return false;
    }
    return overwrite(stream->target.path, g_mapped_file_get_contents(written),
                     g_mapped_file_get_length(written));
}

void
lh_output_discard(LhOutputStream *stream)
{
    if (stream == NULL)
        return;
    if (stream->draft != NULL)
        lh_atomic_file_discard(stream->draft);
    else
        close(stream->fd);
    stream_free(stream);
}

bool
lh_output_close(LhOutputStream *stream, GError **error)
{
    bool ok;

    /* The file may have been opened as an input since. */
    if (!lh_file_uses_check_write(stream->path, error)) {
        lh_output_discard(stream);
        return false;
    }
    ok = stream->cause == 0;
    errno = stream->cause;
    if (ok && stream->draft != NULL)
        ok = lh_atomic_file_rename(g_steal_pointer(&stream->draft), stream->target.path);
    else if (stream->draft != NULL)
        lh_atomic_file_discard(g_steal_pointer(&stream->draft));
    else
        ok = finish(stream->fd, ok && (!stream->aside || copy_aside(stream)));
    if (!ok)
        fail_path(stream->path, errno, error);
    stream_free(stream);
    return ok;
}

bool
lh_output_stdout(const char *text, gsize length, GError **error)
{
    int copy;

    /* Some file systems report a full disk only at close. */
    if (!lh_write_all(STDOUT_FILENO, text, length) || (copy = dup(STDOUT_FILENO)) < 0 ||
        close(copy) != 0)
        return fail_output("standard output", errno, error);
    return true;
}

/* --- the end ------------------------------------------------------------------------------------
 */

void
lh_files_discard_unfinished(void)
{
    lh_atomic_files_unlink();
}

static void
on_signal(int number)
{
    lh_files_discard_unfinished();
    lh_subprocess_kill();
    signal(number, SIG_DFL);
    raise(number);
}

/* Opens closed standard streams on /dev/null, in the wrong direction. */
static void
occupy_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

void
lh_output_init(void)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU };
    struct sigaction action = { .sa_handler = on_signal };
    struct sigaction before;

    occupy_streams();
    signal(SIGXFSZ, SIG_IGN);
    sigemptyset(&action.sa_mask);
    for (guint i = 0; i < G_N_ELEMENTS(numbers); i++) {
        /* Signals that the parent ignores for us (nohup) stay ignored. */
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
    }
}
