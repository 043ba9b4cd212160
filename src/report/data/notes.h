/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes on a result: how the model's file was read, and contradictions between measured collectives
 * and links.
 */
#pragma once

#include "scenario/setup.h"

/* Appends "note: ..." lines on how the model's file was read. */
void lh_describe_notes(const LhModel *model, GString *out);

/* The same in one table cell; NULL without notes. Caller frees. */
char *lh_notes_text(const LhModel *model);

/* Notes on measured collectives that contradict the cluster's links or each other, and on profiles
 * measured on other links: of char *; empty with free communication. Caller frees. The others: as
 * "note: ..." lines, and in one table cell, NULL without notes. */
GPtrArray *lh_link_notes(const LhSetup *setup);
void lh_describe_link_notes(const LhSetup *setup, GString *out);
char *lh_link_notes_text(const LhSetup *setup);
