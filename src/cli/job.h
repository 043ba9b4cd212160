/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that several processes run together: a job, as torchrun, Slurm or mpirun has started
 * it. They meet before anything else is done, and compare their command lines by name; whatever
 * fails in one of them from then on, all are told. A process that is alone only runs the command.
 */
#pragma once

#include "cli/command.h"

/* Runs the command. */
LhAnswer lh_job_run(const LhCommandLine *line, GError **error);

/*
 * Of a command line that cannot be read, and why: if it is one of a job, the others are told, which
 * would wait for this process otherwise. @arguments: what follows the command's name.
 */
void lh_job_refuse(const LhCommand *command, char *const *arguments, const GError *why);
