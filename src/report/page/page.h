/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of HTML that need nothing but themselves: no script, no font, no address of anything else,
 * and a policy in them that forbids browsers to load any. Pieces are appended from top to bottom.
 */
#pragma once

#include "report/base/table.h"

/* Begins the page; @title is its name and its first heading, @below a line under that. */
void lh_page_begin(GString *out, const char *title, const char *below);
void lh_page_end(GString *out);

/* Ends the section before, if there is one, and begins another. */
void lh_page_section(GString *out, const char *title);

/* Sentences: each line is a paragraph. */
void lh_page_words(GString *out, const char *lines);

/* Text that stands as it is, such as a command. */
void lh_page_code(GString *out, const char *text);

/* A picture; @words say what it shows to those who do not see it. */
void lh_page_picture(GString *out, const GString *svg, const char *words);
