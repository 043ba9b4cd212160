/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats of all files that longhaul reads and writes, and the JSON Schema of each that is a
 * table of fields.
 */
#pragma once

#include "base/json/field.h"

typedef struct {
    const char *name;  /* "longhaul.result/3"; "config.json" for formats of others */
    const char *line;  /* for lists: whether it is read or written, and by which command */
    const char *title; /* of its schema; NULL: it has none */
    const LhField *fields;
    const LhField *(*made)(void); /* replaces `fields` where the table is made at run time */
} LhFileFormat;

/* In the order of lists; ends with an entry without a name. */
extern const LhFileFormat lh_file_formats[];

/* The schema of the format whose name begins with @name, "result" or "longhaul.result/3"; NULL with
 * LH_ERROR_USAGE, which lists the formats that have one. Caller frees. */
char *lh_file_format_schema(const char *name, GError **error);
