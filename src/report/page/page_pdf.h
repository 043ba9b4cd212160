/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes pages as HTML or as PDF.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Whether the page is written as PDF. */
bool lh_page_is_pdf(const char *path);
bool lh_page_check_converter(const char *path, GError **error);

/* Writes the page to @path as HTML, or as PDF by a browser or WeasyPrint. */
bool lh_page_write(const char *path, const GString *html, GError **error);
