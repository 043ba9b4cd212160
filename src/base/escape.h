/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Escapes text from files and command lines for the language that it is inserted into, so that none
 * of it is interpreted. One function per language; all append to @out.
 *
 * All of them escape what a terminal interprets or hides: control characters (C0, DEL and C1),
 * direction marks, line separators, and bytes that are not UTF-8. An ESC becomes "\x1b", U+202E
 * becomes "\u202e". The result is UTF-8. @text may be any bytes, but not NULL.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* One line, or several lines: line breaks are escaped as "\n", or kept. */
void lh_escape_line(GString *out, const char *text);
void lh_escape_lines(GString *out, const char *text);

/* As lh_escape_line() and lh_escape_lines(), to a new string; caller frees. */
char *lh_escaped_line(const char *text);
char *lh_escaped_lines(const char *text);

/*
 * A CSV field (RFC 4180), quoted where necessary. Spreadsheets take text that begins with = + - or
 * @ for a formula: with @formulas false it gets a leading apostrophe, which spreadsheets hide.
 * Numbers keep their sign: pass @formulas true for them.
 */
void lh_escape_csv(GString *out, const char *text, bool formulas);

/* Markdown (CommonMark with tables): sentences, whose line breaks are kept, or a table cell, whose
 * line breaks are escaped. */
void lh_escape_md(GString *out, const char *text);
void lh_escape_md_cell(GString *out, const char *text);

/* HTML: text, or an attribute value in double quotes. */
void lh_escape_html(GString *out, const char *text);

/* A gnuplot string with its quotes. They are single quotes, since gnuplot executes `backquotes` in
 * double quotes. */
void lh_escape_gnuplot(GString *out, const char *text);

/* Whether a terminal interprets or hides the character. */
bool lh_escape_is_unsafe(gunichar c);
