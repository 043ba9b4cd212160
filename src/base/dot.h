/* SPDX-License-Identifier: Apache-2.0 */
/* Dot product of two vectors. */
#pragma once

#include <stddef.h>

static inline double
lh_dot(const double *a, const double *b, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}
