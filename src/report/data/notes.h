/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes beside a result: how the model's file was read, and where measured collectives and links
 * contradict each other.
 */
#pragma once

#include "scenario/setup.h"

/* "note: ..." for each note of how the model's file was read, a line each. */
void lh_describe_notes(const LhModel *model, GString *out);

/* The same in one field of a table; NULL: there are none. Caller frees. */
char *lh_notes_text(const LhModel *model);

/* What measured collectives of the cluster contradict, its links or each other, and where a profile
 * found other links than its file has: of char *; none
 * with free communication. Caller frees. As "note: ..." lines; and in one field of a table, NULL
 * if there are none. */
GPtrArray *lh_link_notes(const LhSetup *setup);
void lh_describe_link_notes(const LhSetup *setup, GString *out);
char *lh_link_notes_text(const LhSetup *setup);
