/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unquoted words of TOML 1.0: booleans, numbers, dates and times.
 */
#pragma once

/*
 * Converts @word to the form of other syntaxes: integers in decimal, numbers without underscores
 * and plus; dates, times, inf and nan unchanged. Caller frees. NULL if it is not a value; @reason
 * then says why if it resembles one, else is NULL.
 */
char *lh_toml_scalar(const char *word, const char **reason);
