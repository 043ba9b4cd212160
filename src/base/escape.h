/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that comes from files and command lines, made safe for the language that it is put into: it
 * stays where it is put, and nothing of it is obeyed. One function for each language, all of which
 * append to @out.
 *
 * In all of them, what a terminal obeys or hides is shown as an escape: control characters (C0, DEL
 * and C1), marks that turn the direction of text, separators of lines, and bytes that are not
 * UTF-8; an ESC is "\x1b", U+202E is "\u202e". The result is UTF-8. @text may be any bytes, except
 * NULL.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Text of one line or of several: whether line breaks stay or are shown, "\n". */
void lh_escape_line(GString *out, const char *text);
void lh_escape_lines(GString *out, const char *text);

/* As lh_escape_line() and lh_escape_lines(); caller frees. */
char *lh_escaped_line(const char *text);
char *lh_escaped_lines(const char *text);

/*
 * A field of CSV (RFC 4180), in quotes where it needs them. A spreadsheet takes text that begins
 * with = + - or @ for a formula: with @formulas false, such text gets an apostrophe in front, which
 * a spreadsheet hides. Numbers keep their signs: @formulas is true for them.
 */
void lh_escape_csv(GString *out, const char *text, bool formulas);

/* Sentences or a cell of a table in Markdown (CommonMark with tables); line breaks of sentences
 * stay, those of a cell are shown. */
void lh_escape_md(GString *out, const char *text);
void lh_escape_md_cell(GString *out, const char *text);

/* Text, or the value of an attribute in double quotes, of HTML. */
void lh_escape_html(GString *out, const char *text);

/* A string of gnuplot, with its quotes. Only single quotes will do: in double quotes gnuplot runs
 * what stands in `backquotes`. */
void lh_escape_gnuplot(GString *out, const char *text);

/* Whether a terminal obeys or hides the character. */
bool lh_escape_is_unsafe(gunichar c);
