/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing programs as JSON.
 */
#pragma once

#include "program/explicit/explicit.h"

/* Appends the explicit JSON form of @program to @out. Fails with LH_ERROR_NO beyond
 * LH_EXPLICIT_OPS_MAX ops or LH_EXPLICIT_PARTS_MAX messages. */
bool lh_program_write(const LhProgram *program, GString *out, GError **error);
