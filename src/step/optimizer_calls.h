/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of the optimizer.
 */
#pragma once

#include "step/recorder.h"

void lh_step_record_optimizer(LhStepRecorder *r);
