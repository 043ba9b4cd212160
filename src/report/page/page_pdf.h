/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages as files: as they are, or printed to PDF.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Whether the page is to be printed; else it is written as it is. */
bool lh_page_is_pdf(const char *path);
bool lh_page_check_converter(const char *path, GError **error);

/* Writes the page to @path: as it is, or printed by a browser or by WeasyPrint. */
bool lh_page_write(const char *path, const GString *html, GError **error);
