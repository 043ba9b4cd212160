/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion factors of time units. */
#pragma once

#include <stdint.h>

#define LH_PS_PER_NS 1000
#define LH_NS_PER_US 1000
#define LH_NS_PER_S INT64_C(1000000000)
#define LH_US_PER_S 1000000
