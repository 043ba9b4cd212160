/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/append_log.h"

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/files/file_uses.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOURNAL_BYTES_MAX (G_GINT64_CONSTANT(1) << 30)
#define MODE 0666 /* less the umask */

struct _LhAppendLog {
    char *path;
    int fd;
    int cause; /* errno of the first failed write; 0: none */
};

static bool
fail_journal(const char *path, const char *what, int cause, GError **error)
{
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%s: cannot %s: %s", path, what,
                g_strerror(cause));
    return false;
}

/* Reads the whole file, after locking it against other writers. */
static bool
read_journal(const LhAppendLog *journal, GString *text, GError **error)
{
    struct stat info;
    char piece[1 << 16];
    ssize_t taken;

    if (flock(journal->fd, LOCK_EX | LOCK_NB) != 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%s: another process writes to it",
                    journal->path);
        return false;
    }
    if (fstat(journal->fd, &info) != 0)
        return fail_journal(journal->path, "be read", errno, error);
    if (!S_ISREG(info.st_mode) || info.st_size > JOURNAL_BYTES_MAX) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: allowed is a regular file of at most 1 GiB", journal->path);
        return false;
    }
    while ((taken = read(journal->fd, piece, sizeof(piece))) > 0)
        g_string_append_len(text, piece, taken);
    return taken == 0 || fail_journal(journal->path, "be read", errno, error);
}

/* Splits off the complete lines of @text. Returns their bytes. */
static gsize
split(const GString *text, GPtrArray *lines)
{
    gsize at = 0;
    const char *end;

    while ((end = memchr(text->str + at, '\n', text->len - at)) != NULL) {
        const gsize length = (gsize)(end - (text->str + at));

        g_ptr_array_add(lines, g_strndup(text->str + at, length));
        at += length + 1;
    }
    return at;
}

/* Reads the existing lines after the first, which must be @first. A file without a complete line
 * must be a prefix of @first. */
static bool
take_lines(LhAppendLog *journal, const char *first, GPtrArray *lines, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    gsize kept;

    if (!read_journal(journal, text, error))
        return false;
    kept = split(text, lines);
    if (lines->len == 0 ? strncmp(first, text->str, text->len) != 0
                        : strcmp(g_ptr_array_index(lines, 0), first) != 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: it was written for another query, other inputs or another version; give "
                    "another name, or remove it",
                    journal->path);
        return false;
    }
    if (ftruncate(journal->fd, (off_t)kept) != 0 || lseek(journal->fd, (off_t)kept, SEEK_SET) < 0)
        return fail_journal(journal->path, "be cut to its complete lines", errno, error);
    if (lines->len == 0)
        lh_append_log_append(journal, first);
    else
        g_ptr_array_remove_index(lines, 0);
    return true;
}

LhAppendLog *
lh_append_log_open(const char *path, const char *first, GPtrArray **lines, GError **error)
{
    g_autoptr(LhAppendLog) journal = NULL;
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);

    if (!lh_file_uses_take(path, LH_FILE_USE_UPDATED, NULL, error))
        return NULL;
    journal = g_new0(LhAppendLog, 1);
    journal->path = g_strdup(path);
    journal->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, MODE);
    if (journal->fd < 0) {
        fail_journal(path, "be opened", errno, error);
        return NULL;
    }
    if (!take_lines(journal, first, found, error))
        return NULL;
    *lines = g_steal_pointer(&found);
    return g_steal_pointer(&journal);
}

void
lh_append_log_append(LhAppendLog *journal, const char *line)
{
    g_autofree char *text = g_strconcat(line, "\n", NULL);

    if (journal->cause == 0 && !lh_write_all(journal->fd, text, strlen(text)))
        journal->cause = errno;
}

bool
lh_append_log_close(LhAppendLog *journal, GError **error)
{
    bool ok = true;

    if (journal->cause == 0 && !lh_sync(journal->fd))
        journal->cause = errno;
    if (journal->cause != 0)
        ok = fail_journal(journal->path, "be written", journal->cause, error);
    lh_append_log_free(journal);
    return ok;
}

void
lh_append_log_free(LhAppendLog *journal)
{
    if (journal == NULL)
        return;
    if (journal->fd >= 0)
        close(journal->fd);
    g_free(journal->path);
    g_free(journal);
}
