/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pages of several commands have: tables with captions, constants, and how to repeat the page.
 */
#pragma once

#include "report/data/result_json.h"
#include "report/page/page.h"

/* Appends a table, which it frees; nothing if that is NULL. */
void lh_page_table(GString *out, LhTable *table, const char *caption);

/* A section with where the constants of @setup come from; nothing for a cost model. @title is that
 * of the section. */
void lh_page_constants(GString *out, const LhSetup *setup, const char *title);

/* The section with the command and with what the setups, one at least, have read: each file once.
 */
void lh_page_repeat(GString *out, const LhStamp *stamp, const LhSetup *const *setups, guint count);

/* False (LH_ERROR_USAGE) if @path, of @option, ends neither in .html nor in .pdf and is no pipe or
 * device; LH_ERROR_RUNTIME for a PDF where nothing is installed that makes one. To be called before
 * long work. */
bool lh_page_check_path(const char *option, const char *path, GError **error);
