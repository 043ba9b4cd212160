/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: several processes, started by torchrun, Slurm or mpirun, that run one command together.
 * They rendezvous first and compare their command lines, option by option. An error in one process
 * is reported to all. A process that is alone only runs the command.
 */
#pragma once

#include "cli/command.h"

/* Runs the command, in a job if there is one. */
LhAnswer lh_job_run(const LhCommandLine *line, GError **error);

/*
 * Reports a command line that cannot be parsed, with the reason @why, to the other processes of its
 * job, which would otherwise wait for this one. @arguments: what follows the command's name.
 */
void lh_job_refuse(const LhCommand *command, char *const *arguments, const GError *why);
