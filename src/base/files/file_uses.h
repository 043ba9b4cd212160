/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files the command reads and which it writes. A file has one use: what is read is never
 * overwritten, no output overwrites another one, and a file of lines that is gone on with
 * (append_log.h) is neither. Every path counts, however it came to its name: the options' are told
 * before the work (cli/outputs.c), all others where they are opened (file_input.h, output.h,
 * append_log.h).
 *
 * Files are told apart by device and inode, and by the folder and the name in it, so that symbolic
 * links, hard links and "./x" are the file that they name, and a file that is not there yet is
 * itself. Pipes, terminals and devices have no use: nothing in them is overwritten.
 *
 * A path with another use is LH_ERROR_USAGE: the message names both uses. Threads may call this.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef enum {
    LH_FILE_USE_NONE,
    LH_FILE_USE_READ,
    LH_FILE_USE_WRITTEN, /* anew */
    LH_FILE_USE_UPDATED, /* gone on with, if it is there */
} LhFileUse;

/* By use: "read", ...; NULL for none. */
extern const char *const lh_file_use_names[];

/*
 * The command uses @path. @word is what messages call it: an option ("--output"), or "the
 * scenario"; a file keeps the first that it is used by. Files of a folder that is read, and that
 * have no word of their own, go by the folder's. What is written has no other use yet; nor has what
 * is updated, if there is a @word: without one, it may be updated already.
 */
bool lh_file_uses_take(const char *path, LhFileUse use, const char *word, GError **error);

/* If @path is used without a word, messages call it @name. */
void lh_file_uses_name(const char *path, const char *name);

/* Whether @path may be written now: nobody has taken it to read or update it. */
bool lh_file_uses_check_write(const char *path, GError **error);

/* Forgets what is written and updated. */
void lh_file_uses_forget_outputs(void);

/* Forgets all: for the beginning of a command. */
void lh_file_uses_clear(void);
