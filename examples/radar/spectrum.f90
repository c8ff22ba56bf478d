! The transform of the third stage: power by range and velocity. The sequential program calls it, too.
module spectrum
  use iso_c_binding
  implicit none
  integer, parameter :: samples = 256, pulses = 32
  real(c_double), parameter :: pi = 3.14159265358979323846_c_double
contains
  ! Fourier transform of a power of two of numbers: those of even and of odd place by themselves, and then together.
  recursive function fourier(x) result(y)
    complex(c_double), intent(in) :: x(:)
    complex(c_double) :: y(size(x)), even(size(x)/2), odd(size(x)/2)
    integer :: n, k
    n = size(x)
    if (n == 1) then
      y = x
      return
    end if
    even = fourier(x(1::2))
    odd = fourier(x(2::2))
    do k = 1, n/2
      odd(k) = odd(k)*exp(cmplx(0, -2*pi*(k - 1)/n, c_double))
    end do
    y = [even + odd, even - odd]
  end function

  ! power(range, velocity) of cube(sample, pulse)
  subroutine doppler(cube, power) bind(C)
    complex(c_double), intent(in) :: cube(samples, pulses)
    real(c_double), intent(out) :: power(samples, pulses)
    complex(c_double) :: line(pulses)
    integer :: x, p
    do x = 1, samples
      do p = 1, pulses
        line(p) = cube(x, p)*(0.5_c_double - 0.5_c_double*cos(2*pi*(p - 1)/pulses)) ! less of a target in other velocities
      end do
      line = fourier(line)
      power(x, :) = real(line)**2 + aimag(line)**2
    end do
  end subroutine
end module
