/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading explicit programs from JSON.
 */
#pragma once

#include "program/explicit/explicit.h"

/* Reads the explicit JSON form. Caller frees. */
LhProgram *lh_program_load(const char *path, GError **error);
LhProgram *lh_program_parse(const char *name, const char *text, gsize length, GError **error);
