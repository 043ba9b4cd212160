/*
 * Before anything runs, the processes of a run compare what they were asked for: each has read its
 * own command line and files, on a computer of its own.
 */
#pragma once

#include "plan/execute.h"

/*
 * Compares version, program and options over all processes of @control, an open control plane.
 * False with @error (LH_ERROR_RUNTIME), which names a rank that differs, and in what.
 */
bool lh_execute_agree(const LhProgram *program, const LhSetup *setup, const LhExecuteParams *params,
                      const LhOpenControl *control, GError **error);
