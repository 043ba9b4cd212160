/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks which files the command reads and writes. A file has one use: inputs are never
 * overwritten, no output overwrites another, and a log that is resumed (append_log.h) is neither.
 * All paths count: those of options are registered before the work starts (cli/outputs.c), all
 * others when they are opened (file_input.h, output.h, append_log.h).
 *
 * Files are identified by device and inode, and by folder and name, so that symbolic links, hard
 * links and "./x" are recognised, as are files that do not exist yet. Pipes, terminals and devices
 * have no use: nothing in them is overwritten.
 *
 * A path with a conflicting use is LH_ERROR_USAGE; the message names both uses. Thread-safe.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef enum {
    LH_FILE_USE_NONE,
    LH_FILE_USE_READ,
    LH_FILE_USE_WRITTEN, /* created or replaced */
    LH_FILE_USE_UPDATED, /* resumed if it exists */
} LhFileUse;

/* Name of each use: "read", ...; NULL for none. */
extern const char *const lh_file_use_names[];

/*
 * Registers a use of @path. @word is its name in messages: an option ("--output"), or "the
 * scenario"; a file keeps its first. Files without a word in a folder that is read have the
 * folder's. LH_ERROR_USAGE if the file has a conflicting use: a written file must have no other
 * use; nor an updated one if @word is given (without one, it may be updated already).
 */
bool lh_file_uses_take(const char *path, LhFileUse use, const char *word, GError **error);

/* Names @path in messages if it was registered without a word. */
void lh_file_uses_name(const char *path, const char *name);

/* Checks that @path may be written now: it is neither read nor updated. */
bool lh_file_uses_check_write(const char *path, GError **error);

/* Forgets outputs and updates. */
void lh_file_uses_forget_outputs(void);

/* Forgets everything: for the start of a command. */
void lh_file_uses_clear(void);
