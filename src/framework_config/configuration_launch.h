/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of launchers: torchrun, deepspeed, accelerate, mpirun, srun and sbatch.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Keys in addition to those of the framework; up to one without a name. */
extern const LhConfigKey lh_config_launch_keys[];

/* Sets the number of processes; notes contradictions. */
void lh_config_launch(LhConfig *config);
