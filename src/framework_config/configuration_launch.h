/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What launchers are told: torchrun, deepspeed, accelerate, mpirun, srun and sbatch.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Beside those of any system; up to one without a name. */
extern const LhConfigKey lh_config_launch_keys[];

/* How many processes start; what contradicts itself is noted. */
void lh_config_launch(LhConfig *config);
