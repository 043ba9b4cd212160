/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Self-contained HTML pages: without scripts, fonts or links to other files, and with a policy that
 * forbids browsers to load any. Parts are appended from top to bottom.
 */
#pragma once

#include "report/base/table.h"

/* Begins the page; @title is its title and first heading, @below a line under it. */
void lh_page_begin(GString *out, const char *title, const char *below);
void lh_page_end(GString *out);

/* Ends the previous section, if any, and begins another. */
void lh_page_section(GString *out, const char *title);

/* Appends sentences: each line is a paragraph. */
void lh_page_words(GString *out, const char *lines);

/* Appends preformatted text, such as a command. */
void lh_page_code(GString *out, const char *text);

/* Appends a picture; @words are its alternative text. */
void lh_page_picture(GString *out, const GString *svg, const char *words);
