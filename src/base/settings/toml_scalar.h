/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of TOML 1.0 that stand without quotes: booleans, numbers, dates and times.
 */
#pragma once

/*
 * The value that @word is, as other syntaxes have it: integers are decimal, numbers have no
 * underscores and no plus; dates, times, inf and nan are as they stand. Caller frees. NULL if it is
 * none: then @reason says why, if it almost is one, and is NULL if it is nothing of the kind.
 */
char *lh_toml_scalar(const char *word, const char **reason);
