/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts shared by pages of several commands: tables with captions, constants, and how to reproduce
 * the page.
 */
#pragma once

#include "report/data/result_json.h"
#include "report/page/page.h"

/* Appends and frees a table; nothing for NULL. */
void lh_page_table(GString *out, LhTable *table, const char *caption);

/* Appends a section @title with the provenance of the constants of @setup; nothing for a cost
 * model. */
void lh_page_constants(GString *out, const LhSetup *setup, const char *title);

/* Appends the section with the command and the input files of the setups (at least one), without
 * duplicates. */
void lh_page_repeat(GString *out, const LhStamp *stamp, const LhSetup *const *setups, guint count);

/* False (LH_ERROR_USAGE) unless @path, given by @option, ends in .html or .pdf or is a pipe or a
 * device; LH_ERROR_RUNTIME for a PDF if no program that makes one is installed. Call before long
 * work. */
bool lh_page_check_path(const char *option, const char *path, GError **error);
