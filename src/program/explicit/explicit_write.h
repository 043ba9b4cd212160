/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing programs as JSON.
 */
#pragma once

#include "program/explicit/explicit.h"

/* Appends the explicit JSON form of @program to @out. At most LH_EXPLICIT_OPS_MAX ops: LH_ERROR_NO
 * beyond. */
bool lh_program_write(const LhProgram *program, GString *out, GError **error);
