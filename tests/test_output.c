/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing results: completely or not at all, replacing what was there, with errors that name the
 * cause; child processes end in time. (Full disks and the like: tests/cli/outputs.sh.)
 */
#include "base/error.h"
#include "base/files/append_log.h"
#include "base/files/atomic_file.h"
#include "base/files/file_input.h"
#include "base/files/file_uses.h"
#include "base/files/output.h"
#include "base/files/subprocess.h"
#include "run_tests.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A folder that must be empty at the end of the test. */
static char *
new_folder(void)
{
    return g_dir_make_tmp("longhaul-XXXXXX", NULL);
}

static void
write_text(const char *path, const char *text)
{
    g_autoptr(GError) error = NULL;

    ck_assert_msg(lh_output_file(path, text, strlen(text), &error), "%s",
                  error != NULL ? error->message : "");
}

static void
check_text(const char *path, const char *expected)
{
    g_autofree char *text = NULL;

    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    ck_assert_str_eq(text, expected);
}

static struct stat
info_of(const char *path)
{
    struct stat info;

    ck_assert_int_eq(lstat(path, &info), 0);
    return info;
}

START_TEST(output_replaces_whole_files)
{
    g_autofree char *folder = new_folder();
    g_autofree char *path = g_build_filename(folder, "out", NULL);
    ino_t before;

    write_text(path, "first");
    before = info_of(path).st_ino;
    write_text(path, "2nd");
    check_text(path, "2nd");
    ck_assert(info_of(path).st_ino != before); /* a reader of the old file still has it */
    g_unlink(path);
    ck_assert_int_eq(g_rmdir(folder), 0);
}
END_TEST

START_TEST(output_follows_links_as_editors_do)
{
    g_autofree char *folder = new_folder();
    g_autofree char *path = g_build_filename(folder, "out", NULL);
    g_autofree char *link = g_build_filename(folder, "link", NULL);
    g_autofree char *second = g_build_filename(folder, "second", NULL);

    ck_assert_int_eq(symlink("out", link), 0);
    ck_assert_int_eq(symlink("link", second), 0);
    write_text(second, "through a link to nothing");
    check_text(path, "through a link to nothing");
    write_text(second, "again");
    check_text(path, "again");
    ck_assert(S_ISLNK(info_of(link).st_mode) && S_ISLNK(info_of(second).st_mode));
    g_unlink(second);
    g_unlink(link);
    g_unlink(path);
    ck_assert_int_eq(g_rmdir(folder), 0);
}
END_TEST

START_TEST(output_keeps_mode_and_hard_links)
{
    g_autofree char *folder = new_folder();
    g_autofree char *path = g_build_filename(folder, "out", NULL);
    g_autofree char *other = g_build_filename(folder, "other", NULL);

    write_text(path, "first");
    ck_assert_int_eq(chmod(path, 0640), 0);
    write_text(path, "second");
    ck_assert_uint_eq(info_of(path).st_mode & 07777, 0640);
    ck_assert_int_eq(link(path, other), 0);
    write_text(path, "3rd");
    check_text(other, "3rd");
    ck_assert_uint_eq(info_of(path).st_ino, info_of(other).st_ino);
    g_unlink(other);
    g_unlink(path);
    ck_assert_int_eq(g_rmdir(folder), 0);
}
END_TEST

/* A predictable name could be a symbolic link to another place. */
/* A file written piece by piece appears at the end; without an end the old one stays. */
START_TEST(output_streams_appear_at_the_end)
{
    g_autofree char *folder = new_folder();
    g_autofree char *path = g_build_filename(folder, "out", NULL);
    g_autofree char *other = g_build_filename(folder, "other", NULL);
    g_autofree char *missing = g_build_filename(folder, "no", "out", NULL);
    g_autoptr(GError) error = NULL;

    for (int linked = 0; linked < 2; linked++) {
        for (int ends = 0; ends < 2; ends++) {
            LhOutputStream *stream;

            write_text(path, "before, and longer");
            if (linked && ends == 0)
                ck_assert_int_eq(link(path, other), 0);
            stream = lh_output_open(path, NULL);
            ck_assert_ptr_nonnull(stream);
            lh_output_write(stream, "one ", 4);
            lh_output_write(stream, "two", 3);
            check_text(path, "before, and longer");
            if (ends)
                ck_assert(lh_output_close(stream, NULL));
            else
                lh_output_discard(stream);
            check_text(path, ends ? "one two" : "before, and longer");
        }
    }
    check_text(other, "one two");
    lh_output_discard(NULL);
    ck_assert_ptr_null(lh_output_open(missing, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "there is no folder"));
    g_unlink(other);
    g_unlink(path);
    ck_assert_int_eq(g_rmdir(folder), 0);
}
END_TEST

START_TEST(output_drafts_have_new_names)
{
    g_autofree char *folder = new_folder();
    g_autofree char *target = g_build_filename(folder, "out", NULL);
    LhAtomicFile *a = lh_atomic_file_new(target, 0600);
    LhAtomicFile *b = lh_atomic_file_new(target, 0600);
    g_autofree char *a_path = g_strdup(a->path);

    ck_assert_str_ne(a->path, b->path);
    ck_assert(lh_write_all(a->fd, "a", 1) && lh_write_all(b->fd, "b", 1));
    ck_assert(lh_atomic_file_rename(a, target));
    check_text(target, "a");
    ck_assert(lh_atomic_file_rename(b, target));
    check_text(target, "b");
    ck_assert(!g_file_test(a_path, G_FILE_TEST_EXISTS));
    a = lh_atomic_file_new(target, 0600);
    lh_files_discard_unfinished();
    ck_assert(!g_file_test(a->path, G_FILE_TEST_EXISTS));
    lh_atomic_file_discard(a);
    g_unlink(target);
    ck_assert_int_eq(g_rmdir(folder), 0);
}
END_TEST

START_TEST(output_writes_to_what_is_no_file)
{
    struct stat info;

    ck_assert(lh_output_check("/dev/null", NULL));
    write_text("/dev/null", "gone");
    ck_assert(stat("/dev/null", &info) == 0 && S_ISCHR(info.st_mode));
}
END_TEST

static void
check_refused(const char *path, const char *reason)
{
    g_autoptr(GError) early = NULL;
    g_autoptr(GError) error = NULL;

    ck_assert(!lh_output_check(path, &early));
    ck_assert(!lh_output_file(path, "x", 1, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
    ck_assert_str_eq(early->message, error->message);
    ck_assert_msg(g_str_has_suffix(error->message, reason), "%s", error->message);
}

START_TEST(output_says_what_is_wrong)
{
    g_autofree char *folder = new_folder();
    g_autofree char *path = g_build_filename(folder, "file", NULL);
    g_autofree char *below = g_build_filename(path, "below", NULL);
    g_autofree char *circle = g_build_filename(folder, "circle", NULL);
    g_autofree char *letters = g_strnfill(300, 'a');
    g_autofree char *long_name = g_build_filename(folder, letters, NULL);
    g_autoptr(GError) error = NULL;

    write_text(path, "kept");
    ck_assert_int_eq(symlink("circle", circle), 0);
    check_refused("/no/such/folder/file", ": there is no folder /no/such/folder");
    check_refused(below, ": Not a directory");
    check_refused(folder, ": Is a directory");
    check_refused(circle, ": Too many levels of symbolic links");
    check_refused(long_name, ": File name too long");
    check_refused("", "a file without a name: No such file or directory");
    ck_assert(!lh_output_file("/dev/full", "x", 1, &error));
    ck_assert_str_eq(error->message, "cannot write /dev/full: No space left on device");
    check_text(path, "kept");
    g_unlink(circle);
    g_unlink(path);
    ck_assert_int_eq(g_rmdir(folder), 0);
}
END_TEST

/* Checks that no function here writes to @path, and that each reports @expected. */
static void
check_spared(const char *path, const char *expected)
{
    for (int way = 0; way < 3; way++) {
        g_autoptr(GError) error = NULL;
        GPtrArray *lines = NULL;

        if (way == 0)
            ck_assert(!lh_output_file(path, "x", 1, &error));
        else if (way == 1)
            ck_assert_ptr_null(lh_output_open(path, &error));
        else
            ck_assert_ptr_null(lh_append_log_open(path, "first", &lines, &error));
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_USAGE));
        ck_assert_msg(strstr(error->message, expected) != NULL, "%s", error->message);
    }
}

/* An input is never overwritten: neither by another path, nor a symbolic link, nor a hard link. */
START_TEST(output_spares_what_is_read)
{
    g_autofree char *folder = new_folder();
    g_autofree char *path = g_build_filename(folder, "in", NULL);
    g_autofree char *around = g_build_filename(folder, ".", "in", NULL);
    g_autofree char *link = g_build_filename(folder, "link", NULL);
    g_autofree char *hard = g_build_filename(folder, "hard", NULL);
    g_autofree char *other = g_build_filename(folder, "other", NULL);
    gsize length;

    write_text(path, "precious");
    ck_assert_int_eq(symlink("in", link), 0);
    ck_assert_int_eq(linkat(AT_FDCWD, path, AT_FDCWD, hard, 0), 0);
    g_free(lh_input_read(around, 1 << 20, &length, NULL));
    check_spared(path, "would overwrite a file that is read");
    check_spared(link, "would overwrite a file that is read");
    check_spared(hard, "would overwrite a file that is read");
    lh_file_uses_name(hard, "--from");
    check_spared(link, "would overwrite the file of --from");
    write_text(other, "anything");
    check_text(path, "precious");
    /* The name refers to its input even if the file was replaced. */
    g_unlink(path);
    check_spared(path, "would overwrite the file of --from");
    lh_file_uses_clear();
    write_text(path, "new");
    g_unlink(link);
    g_unlink(hard);
    g_unlink(path);
    g_unlink(other);
    ck_assert_int_eq(g_rmdir(folder), 0);
}
END_TEST

/* File systems reuse the inode of a deleted file. */
START_TEST(output_is_not_what_is_gone)
{
    g_autofree char *folder = new_folder();
    g_autofree char *gone = g_build_filename(folder, "gone", NULL);
    g_autofree char *path = g_build_filename(folder, "out", NULL);
    ino_t inode;
    gsize length;

    write_text(gone, "read");
    inode = info_of(gone).st_ino;
    g_free(lh_input_read(gone, 1 << 20, &length, NULL));
    g_unlink(gone);
    g_usleep(50000); /* longer than the resolution of file system clocks */
    write_text(path, "new");
    for (int i = 0; i < 20 && info_of(path).st_ino != inode; i++)
        write_text(path, "new again");
    write_text(path, "last");
    check_text(path, "last");
    lh_file_uses_clear();
    g_unlink(path);
    ck_assert_int_eq(g_rmdir(folder), 0);
}
END_TEST

/* An input opened between the start and the end of an output. */
START_TEST(output_spares_what_is_read_late)
{
    g_autofree char *folder = new_folder();
    g_autofree char *path = g_build_filename(folder, "in", NULL);
    g_autoptr(GError) error = NULL;
    LhOutputStream *stream;
    FILE *file;

    write_text(path, "precious");
    stream = lh_output_open(path, NULL);
    lh_output_write(stream, "x", 1);
    file = lh_input_open(path, NULL);
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_assert(!lh_output_close(stream, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_USAGE));
    check_text(path, "precious");
    lh_file_uses_clear();
    g_unlink(path);
    ck_assert_int_eq(g_rmdir(folder), 0); /* no draft is left */
}
END_TEST

/* An output named on the command line is also rejected when it is opened for reading. */
START_TEST(output_has_one_use)
{
    g_autofree char *folder = new_folder();
    g_autofree char *new = g_build_filename(folder, "new", NULL);
    g_autofree char *link = g_build_filename(folder, "link", NULL);
    g_autofree char *journal = g_build_filename(folder, "journal", NULL);
    g_autoptr(GPtrArray) lines = NULL;
    g_autoptr(GError) error = NULL;

    ck_assert_int_eq(symlink("new", link), 0);
    ck_assert(lh_file_uses_take(new, LH_FILE_USE_WRITTEN, "--output", NULL));
    ck_assert(!lh_file_uses_take(link, LH_FILE_USE_WRITTEN, "--timeline", &error));
    ck_assert_ptr_nonnull(strstr(error->message, "--timeline "));
    ck_assert_ptr_nonnull(strstr(error->message, "would overwrite the file of --output ("));
    g_clear_error(&error);
    write_text(new, "made since");
    ck_assert_ptr_null(lh_input_open(link, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "--output "));
    ck_assert_ptr_nonnull(strstr(error->message, "would overwrite a file that is read ("));
    ck_assert(lh_file_uses_take(journal, LH_FILE_USE_UPDATED, "--points", NULL));
    lh_append_log_free(lh_append_log_open(journal, "first", &lines, NULL));
    ck_assert_ptr_nonnull(lines);
    ck_assert(!lh_output_file(journal, "x", 1, NULL));
    check_text(journal, "first\n");
    lh_file_uses_forget_outputs();
    write_text(journal, "x");
    for (int i = 0; i < 2; i++)
        ck_assert(lh_file_uses_take("/dev/null", i == 0 ? LH_FILE_USE_READ : LH_FILE_USE_WRITTEN,
                                    "-", NULL));
    lh_file_uses_clear();
    g_unlink(link);
    g_unlink(new);
    g_unlink(journal);
    ck_assert_int_eq(g_rmdir(folder), 0);
}
END_TEST

/* Two processes write one file, by replacing and by overwriting it: a reader always gets one
 * complete text, from either. */
static void
write_often(const char *path, char letter)
{
    g_autofree char *text = g_strnfill(20000, letter);

    for (int i = 0; i < 40; i++) {
        if (!lh_output_file(path, text, strlen(text), NULL))
            _exit(1);
    }
    _exit(0);
}

static void
check_whole(const char *path)
{
    g_autofree char *text = NULL;
    gsize length = 0;

    ck_assert(g_file_get_contents(path, &text, &length, NULL));
    ck_assert_uint_eq(length, 20000);
    ck_assert_uint_eq(strspn(text, text[0] == 'a' ? "a" : "b"), length);
}

START_TEST(output_writers_do_not_mix)
{
    g_autofree char *folder = new_folder();
    g_autofree char *path = g_build_filename(folder, "out", NULL);
    g_autofree char *other = g_build_filename(folder, "other", NULL);

    for (int linked = 0; linked < 2; linked++) {
        pid_t pids[2];

        for (int i = 0; i < 2; i++) {
            pids[i] = fork();
            ck_assert_int_ge(pids[i], 0);
            if (pids[i] == 0)
                write_often(path, i == 0 ? 'a' : 'b');
        }
        for (int i = 0; i < 2; i++) {
            int status = 0;

            ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
            ck_assert_int_eq(status, 0);
        }
        check_whole(path);
        if (linked == 0)
            ck_assert_int_eq(link(path, other), 0);
    }
    g_unlink(other);
    g_unlink(path);
    ck_assert_int_eq(g_rmdir(folder), 0);
}
END_TEST

/* ---- child processes ---- */

/* Runs @script in a shell and returns its output; NULL with @error. */
static char *
shell(const char *script, const char *input, unsigned deadline_s, GError **error)
{
    const char *const argv[] = { "sh", "-c", script, NULL };
    const LhSubprocess child = { argv, input, strlen(input), deadline_s };
    g_autoptr(GString) output = g_string_new(NULL);

    return lh_subprocess_run(&child, output, error) ? g_string_free(g_steal_pointer(&output), FALSE)
                                                    : NULL;
}

static void
check_child_fails(const char *script, unsigned deadline_s, const char *reason)
{
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(shell(script, "", deadline_s, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
    ck_assert_str_eq(error->message, reason);
}

START_TEST(output_children_are_read)
{
    g_autofree char *input = g_strnfill(300000, 'x');
    g_autofree char *copy = shell("cat; echo complaint >&2", input, 60, NULL);

    ck_assert_str_eq(copy, input);
}
END_TEST

START_TEST(output_children_fail_with_reasons)
{
    static const char *const absent[] = { "no-such-program", NULL };
    const LhSubprocess child = { absent, "", 0, 10 };
    g_autoptr(GString) output = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    check_child_fails("echo 'line 3: \033[31mbad' >&2; exit 5", 60,
                      "sh failed with status 5: line 3: \\x1b[31mbad");
    check_child_fails("exit 1", 60, "sh failed with status 1: it prints nothing");
    check_child_fails("kill -9 $$", 60, "sh was ended by signal 9 (Killed): it prints nothing");
    check_child_fails("sleep 1000", 1, "sh did not end within 1 s and was killed");
    check_child_fails("exec >&- 2>&-; sleep 1000", 1, "sh did not end within 1 s and was killed");
    ck_assert(!lh_subprocess_run(&child, output, &error));
    ck_assert_str_eq(error->message, "no-such-program is not installed");
}
END_TEST

static char *
answer_as_told(const void *data, GError **error)
{
    const char *told = data;

    if (strcmp(told, "crash") == 0) {
        fputs("no memory\n", stderr);
        raise(SIGKILL);
    }
    if (strcmp(told, "end") == 0)
        _exit(3);
    if (strcmp(told, "sleep") == 0)
        g_usleep(1000 * G_USEC_PER_SEC);
    if (strcmp(told, "refuse") == 0)
        g_set_error_literal(error, LH_ERROR, LH_ERROR_NO, "there is none");
    puts("it talks");
    fflush(stdout);
    return strcmp(told, "refuse") == 0 ? NULL : g_strdup(told);
}

START_TEST(output_questions_are_answered_or_not)
{
    static const struct {
        const char *told, *error;
    } cases[] = {
        { "refuse", "there is none" },
        { "crash", "asking was ended by signal 9 (Killed): no memory" },
        { "end", "asking failed with status 3: it prints nothing" },
        { "sleep", "asking did not end within 1 s and was killed" },
    };
    g_autofree char *text = g_strnfill(300000, 'x');
    g_autofree char *answer = lh_subprocess_ask("asking", answer_as_told, text, 60, NULL);
    g_autofree char *empty = lh_subprocess_ask("asking", answer_as_told, "", 60, NULL);

    ck_assert_str_eq(answer, text);
    ck_assert_str_eq(empty, "");
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        ck_assert_ptr_null(lh_subprocess_ask("asking", answer_as_told, cases[i].told,
                                             i + 1 < G_N_ELEMENTS(cases) ? 60 : 1, &error));
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
        ck_assert_str_eq(error->message, cases[i].error);
    }
}
END_TEST

LH_TEST_MAIN("output", output_replaces_whole_files, output_follows_links_as_editors_do,
             output_keeps_mode_and_hard_links, output_streams_appear_at_the_end,
             output_drafts_have_new_names, output_writes_to_what_is_no_file,
             output_says_what_is_wrong, output_spares_what_is_read, output_spares_what_is_read_late,
             output_is_not_what_is_gone, output_has_one_use, output_writers_do_not_mix,
             output_children_are_read, output_children_fail_with_reasons,
             output_questions_are_answered_or_not)
